package exec

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/fdio"
	"github.com/fosterinit/foster/internal/proc"
	"github.com/fosterinit/foster/internal/sigwait"
)

// notCaught are left as they are, each for its reason.
var notCaught = sigwait.Of(
	unix.SIGKILL, unix.SIGSTOP, // the kernel's
	unix.SIGURG,  // the Go runtime preempts with it
	unix.SIGPIPE, // a write to a pipe that nobody reads is an error, not an end
	unix.SIGXFSZ, // nor is one to a file that may not grow
)

// background is what the kernel sends a process that is not in the foreground
// of its terminal and writes to it, or takes the foreground. The command gets
// the default, which stops it; once it runs, foster itself, which does both,
// ignores it. Foster never reads: a SIGTTIN is another's in its group, so for
// the job, and is forwarded.
var background = sigwait.Of(unix.SIGTTOU)

var (
	caught = ^sigwait.Set(0) &^ notCaught &^ background
	// forwarded as they are; SIGTERM asks foster to stop.
	forwarded = caught &^ sigwait.Of(unix.SIGCHLD, unix.SIGTERM)
)

// CatchSignals records every signal from now on that can be caught, for Keep to
// act on. Call it first thing in main, on the goroutine that will call Keep:
// before, the Go runtime ends the program on SIGTERM.
//
// Where signals were blocked or there is a terminal, the goroutine is locked to
// its thread: the mask is a thread's, and a stop that the process sends itself
// takes effect at once only in the main one. Elsewhere the lock would cost a
// thread.
func CatchSignals() error {
	if err := errors.Join(sigwait.Catch(caught, sigwait.Of(unix.SIGPIPE, unix.SIGXFSZ)), sigwait.Reset(background)); err != nil {
		return err
	}
	blocked, err := sigwait.EmptyMask()
	if err != nil || blocked || fdio.IsTerminal(ttyFD) {
		runtime.LockOSThread()
	}
	if err == nil && blocked {
		_, err = sigwait.EmptyMask() // the goroutine may have changed threads
	}
	return err
}

func (k *keeper) handle(signals sigwait.Set) {
	for sig := range (signals & forwarded).All {
		if sig == unix.SIGCONT && k.control >= 0 {
			continue // the caller's, to wake this process: see Cmd.wake
		}
		k.log.Debug("signal forwarded", "signal", sigwait.Name(sig))
		if sig == unix.SIGCONT && !k.ended {
			k.continueGroup() // a terminal's stop was for all of the group
			continue
		}
		k.signal(sig)
	}
	if signals.Has(unix.SIGTERM) {
		k.stop(Stopped)
	}
}

// stop begins the end: the stop signal now, SIGKILL when the grace period is
// over. A second one changes nothing.
func (k *keeper) stop(why Reason) {
	if k.phase != running {
		return
	}
	k.beginGrace()
	k.why = why
	sig := k.spec.stopSignal()
	k.log.Info("stopping", "command", k.res.Name, "reason", string(why), "signal", sigwait.Name(sig), "grace_period", k.spec.GracePeriod.String())
	if sig == unix.SIGKILL {
		return // the grace period is over, the sweep is next
	}
	if k.ended {
		k.tellLeftovers() // the signal target was the main process's, or went with it
		return
	}
	if k.spec.SignalTarget != TargetProcess {
		k.told = proc.Ticks()
	}
	k.signalMain(sig, unix.SIGCONT) // a stopped process could not act on it
	if k.spec.SignalTarget == TargetTree {
		k.tellAll()
	}
}

func (k *keeper) beginGrace() {
	k.phase = stopping
	k.graceEnd = time.Now()
	if k.spec.stopSignal() != unix.SIGKILL {
		k.graceEnd = k.graceEnd.Add(k.spec.GracePeriod)
	}
}

// kill ends the grace period now.
func (k *keeper) kill(why Reason) {
	if k.phase == running {
		k.why = why
	}
	if k.phase != killing {
		k.phase, k.graceEnd = stopping, time.Now()
	}
}

// signal sends sig to the signal target.
func (k *keeper) signal(sig unix.Signal) {
	if !k.ended {
		k.signalMain(sig)
	}
	switch {
	case k.spec.SignalTarget == TargetTree:
		k.tell(func(m member) bool { return k.ended || m.Group != k.pid }, sig)
	case k.spec.SignalTarget == TargetGroup && k.ended:
		// It has no leader to hold its number any more: who is in it is reached
		// one by one.
		k.tell(func(m member) bool { return m.Group == k.pid }, sig)
	}
}

// signalMain sends the signals to the main process or its group.
func (k *keeper) signalMain(sigs ...unix.Signal) {
	for _, sig := range sigs {
		if k.spec.SignalTarget != TargetProcess {
			k.warn(k.reap.Signal(-k.pid, sig), sig)
		}
		if pgid, _ := unix.Getpgid(k.pid); pgid != k.pid || k.spec.SignalTarget == TargetProcess {
			k.warn(k.reap.Signal(k.pid, sig), sig) // it may have left its own group
		}
	}
}

// tellLeftovers sends the stop signal to those that have not had it: who has may
// be cleaning up, and to many programs a second one means to give that up.
func (k *keeper) tellLeftovers() {
	if k.phase == running {
		k.beginGrace()
	}
	sig := k.spec.stopSignal()
	if sig == unix.SIGKILL {
		return // at once: the sweep is next
	}
	k.log.Info("leftovers stopping", "command", k.res.Name, "signal", sigwait.Name(sig), "grace_period", time.Until(k.graceEnd).Round(time.Millisecond).String())
	k.tellAll()
}

// tellAll sends the stop signal to all of the tree that have not had it. Who ends
// while it is looked at hands on children that this look misses: the next ones
// meet them. The looks are bounded: a fork bomb has new ones for ever.
func (k *keeper) tellAll() {
	if k.heard == nil {
		k.heard = make(map[int]uint64)
	}
	for look := 0; look < 10 && k.tellMore(func(m member) bool { return !k.hasBeenTold(m) }); look++ {
		if k.tree.files == nil {
			break // there are only children to be seen, and those do not change in between
		}
	}
	k.lookAgain = time.Now().Add(youth)
}

// tellMore sends the stop signal to those of whom who says so and that have not
// had it from here, and reports whether there were any.
func (k *keeper) tellMore(who func(member) bool) (any bool) {
	k.tell(func(m member) bool {
		start, heard := k.heard[m.Pid]
		if heard && start == m.StartTime || !who(m) {
			return false
		}
		k.heard[m.Pid], any = m.StartTime, true
		return true
	}, k.spec.stopSignal(), unix.SIGCONT)
	return any
}

// tellOrphans tells those that have become orphans since, and again those that
// were too young to understand: what a shell forks has the shell's handlers until
// it executes its program, and forgets what came before. Who has a parent is that
// one's affair: it may be what it tidies up with.
func (k *keeper) tellOrphans() {
	told := proc.Ticks() - uint64((time.Since(k.lookAgain)+youth)/proc.Tick)
	k.lookAgain = time.Time{}
	for pid, start := range k.heard {
		if young(start, told) {
			delete(k.heard, pid)
		}
	}
	k.tellMore(func(m member) bool { return m.direct && (!k.hasBeenTold(m) || young(m.StartTime, told)) })
}

func (k *keeper) tell(who func(member) bool, sigs ...unix.Signal) {
	k.walk(func(m member) {
		if !who(m) {
			return
		}
		for _, sig := range sigs {
			k.warn(m.signal(sig), sig)
		}
	})
}

// hasBeenTold reports whether the process has had the stop signal with its group.
// Of one that nothing is known of it says no: better twice.
func (k *keeper) hasBeenTold(m member) bool {
	if m.Pid == k.pid {
		return k.told != 0 || k.spec.SignalTarget == TargetProcess
	}
	return k.told != 0 && m.Group == k.pid && m.StartTime != 0 && !(m.direct && young(m.StartTime, k.told))
}

// youth is how long a process may take from its fork to its program.
const youth = 50 * time.Millisecond

// young reports whether a process of this start time was not there, or not yet
// itself, at the time given.
func young(start, ticks uint64) bool { return start+uint64(youth/proc.Tick) >= ticks }

// walk visits every living process of the tree.
func (k *keeper) walk(visit func(member)) {
	k.openTree()
	k.tree.walk(func(m member) bool {
		if !m.Dead() {
			visit(m)
		}
		return true
	})
}

func (k *keeper) openTree() {
	if k.tree != nil {
		return
	}
	var err error
	if k.tree, err = newTree(k.reap); err != nil {
		k.log.Warn("/proc is of no use: only children are reached, their children when they have ended", "error", err)
	}
}
