// Package reaper owns wait: nothing else in the process may call wait4 or
// waitid for a child of it.
//
// A pid names a process only until it is waited for; after that the kernel may
// give it to anyone. One lock therefore orders the three things that touch it:
// fork and registration, wait and removal, and kill. So a child that ends
// before its parent has heard of its pid is still matched to its callback, and
// a signal never reaches a process that merely inherited the number.
package reaper

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotChild is returned for a pid that is no unreaped child of the process.
var ErrNotChild = errors.New("not a child of this process, or already reaped")

// Exit is how a process ended. Rusage is that of the process and of the
// children it waited for itself (getrusage(2)).
type Exit struct {
	Pid    int
	Status unix.WaitStatus
	Rusage unix.Rusage
}

// UserTime is the CPU time spent in user mode.
func (e Exit) UserTime() time.Duration { return time.Duration(e.Rusage.Utime.Nano()) }

// SystemTime is the CPU time spent in the kernel.
func (e Exit) SystemTime() time.Duration { return time.Duration(e.Rusage.Stime.Nano()) }

// MaxRSS is the largest resident set in bytes; the kernel counts in KiB.
func (e Exit) MaxRSS() int64 { return int64(e.Rusage.Maxrss) << 10 }

// Child is what is to be called for a child that was started. The callbacks run
// inside [Reaper.Drain], under the reaper's lock: they may signal processes,
// but not call a method of the Reaper.
type Child struct {
	// Ending, if not nil, is called when the child has ended and is still a
	// zombie: its pid, and a process group that it leads, cannot be anyone
	// else's yet.
	Ending func()
	// Ended is called when the child has been reaped.
	Ended func(Exit)
}

// A Reaper waits for every child of the process: those that it started and the
// orphans that a subreaper or PID 1 is given. Its methods may be called from
// any goroutine.
type Reaper struct {
	mu       sync.Mutex
	children map[int]Child
	orphan   func(Exit)
}

// New returns a Reaper that calls orphan, under its lock, for each process
// that it reaps and did not start.
func New(orphan func(Exit)) *Reaper {
	return &Reaper{children: make(map[int]Child), orphan: orphan}
}

// Start calls fork and registers the child whose pid it returns, as one step:
// no Drain comes in between.
func (r *Reaper) Start(fork func() (pid int, err error), c Child) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := fork()
	if err != nil {
		return 0, err
	}
	r.children[pid] = c
	return pid, nil
}

// Drain reaps until no child is left that has ended; call it after SIGCHLD,
// which the kernel sends once for any number of them. It reports whether the
// process has no children at all: ECHILD from wait is the proof that nothing
// lives below a subreaper. Where orphans come as fast as they are reaped it
// returns when until, if not zero, has passed: call it again, without waiting.
func (r *Reaper) Drain(until time.Time) (empty bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		pid, err := ended()
		switch {
		case errors.Is(err, unix.ECHILD):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("cannot wait for children: %w", err)
		case pid == 0:
			return false, nil
		}
		if err := r.reap(pid); err != nil {
			return false, err
		}
		if !until.IsZero() && !time.Now().Before(until) {
			return false, nil
		}
	}
}

func (r *Reaper) reap(pid int) error {
	c, started := r.children[pid]
	if c.Ending != nil {
		c.Ending()
	}
	e, err := wait(pid)
	if err != nil {
		return err
	}
	delete(r.children, pid)
	switch {
	case !started:
		r.orphan(e)
	case c.Ended != nil:
		c.Ended(e)
	}
	return nil
}

// Hold runs f while nothing is reaped: every pid that is a child of the process
// when f looks stays that child, if only as a zombie, until f returns.
func (r *Reaper) Hold(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// Signal sends sig to a child that was started and not reaped. A negative pid
// is the process group that the child leads. A child that has ended but was not
// reaped is signalled without effect, as kill(2) has it.
func (r *Reaper) Signal(pid int, sig unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.children[max(pid, -pid)]; !ok {
		return ErrNotChild
	}
	return unix.Kill(pid, sig)
}

// Stopped returns the signal that stopped the child pid since the last call, or
// 0. It does not reap.
func (r *Reaper) Stopped(pid int) unix.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.children[pid]; !ok {
		return 0
	}
	return stopped(pid)
}

// Await is Wait without the reaping: the child stays a zombie, and its pid its
// own, until Wait.
func Await(pid int) error {
	if _, err := waitid(unix.P_PID, pid, unix.WEXITED|unix.WNOWAIT|unix.WALL); err != nil {
		return fmt.Errorf("cannot wait for process %d: %w", pid, err)
	}
	return nil
}

// Wait waits for one child that no Reaper watches over, in a program whose
// other children are its own affair, and reaps it. It blocks until the child
// has ended.
func Wait(pid int) (Exit, error) { return wait(pid) }

// EachChild calls f with every child of the process, dead or alive, where there
// is no /proc to list them: it asks waitid about every pid there can be, which
// takes seconds. It is to be called under [Reaper.Hold].
func EachChild(f func(pid int)) {
	for pid := 1; pid <= maxPid; pid++ {
		if isChild(pid) {
			f(pid)
		}
	}
}
