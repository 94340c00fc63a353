package exec

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
	"github.com/fosterinit/foster/internal/sigwait"
	"github.com/fosterinit/foster/reaper"
)

// Options are what Keep needs beside the Spec.
type Options struct {
	Log     *slog.Logger // nil: nothing is logged
	PassFDs []int        // inherited descriptors that the command gets under the same number
	KeepFDs []int        // inherited descriptors that stay open, for this process alone
	// Started, if not nil, is called with the pid of the main process.
	Started func(pid int)

	passAs map[int]int // descriptors that the command gets under another number: by that
}

// files returns the descriptors of the command by number; -1 is closed.
func (o *Options) files() []uintptr {
	files := []uintptr{0, 1, 2}
	pass := func(number, fd int) {
		for len(files) <= number {
			files = append(files, ^uintptr(0))
		}
		files[number] = uintptr(fd)
	}
	for _, fd := range o.PassFDs {
		pass(fd, fd)
	}
	for number, fd := range o.passAs {
		pass(number, fd)
	}
	return files
}

// passed returns what of this process's own is for the command.
func (o *Options) passed() []int {
	return append(slices.Clone(o.PassFDs), slices.Collect(maps.Values(o.passAs))...)
}

// phase is how far a run has come.
type phase int

const (
	running  phase = iota // until the deadline, a stop, or the end of the main process
	stopping              // the stop signal is out, the grace period runs
	killing               // SIGKILL until nothing is left
)

// A keeper is one run of one command in a process that does nothing else.
// Everything happens on one goroutine, which waits for signals, and none of it
// is shared.
type keeper struct {
	spec    *Spec
	opt     Options
	control int // -1 for none
	log     *slog.Logger
	reap    *reaper.Reaper
	// debug: arguments for a record that is dropped would be garbage, and
	// orphans may come for years.
	debug bool
	tree  *tree     // of this process; made when first walked
	tty   *terminal // nil for a library's command without one

	pid       int         // of the main process, and its group
	main      reaper.Exit // how it ended, once ended is set
	ended     bool
	empty     bool // wait has said ECHILD: no process is left
	phase     phase
	why       Reason    // Completed until a stop has begun
	deadline  time.Time // zero: none
	graceEnd  time.Time
	told      uint64         // when the group had the stop signal, as proc.Ticks; 0 is not yet
	heard     map[int]uint64 // the others that have had it, by pid: start time
	lookAgain time.Time      // for those that were missed, or too young for it; zero is not needed
	lethal    bool           // SIGKILL has been sent
	victims   *sweep         // nil until it has begun
	reaped    int            // processes, for a sweep to see whether it gets on
	oom       bool           // the kernel killed the main process for want of memory
	ooms      int            // oom kills in the cgroup at the start
	res       Result
}

// Keep runs spec to its proven end. The process becomes the command's keeper:
// it must have no other children, have called CatchSignals, and call Keep once.
// Descriptors 0 and 1 are closed when the command has started, so that nobody
// waits for this process to close them, and the working directory becomes /. The
// garbage collector rests from then on; as PID 1, and while it kills, the process
// runs with SCHED_RR where it may.
//
// The error is a *StartError if the command never ran; the Result is complete
// in either case.
func Keep(spec *Spec, opt Options) (*Result, error) { return keep(spec, opt, -1) }

// keep is Keep, told what to do through the descriptor control, if there is one.
func keep(spec *Spec, opt Options, control int) (*Result, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	k := &keeper{spec: spec, opt: opt, control: control, log: opt.Log, why: Completed}
	k.debug = k.log.Enabled(context.Background(), slog.LevelDebug)
	k.reap = reaper.New(k.orphanReaped)
	k.res = Result{Name: spec.name(), Attempt: spec.Attempt, StartedAt: time.Now()}
	err := k.start()
	if err == nil {
		k.watch()
	}
	k.finish(err)
	return &k.res, err
}

func (k *keeper) start() error {
	settle()
	becomeSubreaper(k.log)
	closeInherited(k.log, append(k.opt.passed(), k.opt.KeepFDs...))
	if k.control < 0 { // what is above a library's keeper is no shell
		k.tty = openTerminal(0, 2, 1)
	}
	pid, err := k.reap.Start(k.fork, reaper.Child{Ending: k.mainEnding, Ended: k.mainEnded})
	// Also if it has not started: the child may have taken the foreground before.
	if err := sigwait.Ignore(background); err != nil {
		k.log.Warn("terminal signals not ignored", "error", err)
	}
	if err != nil {
		return err
	}
	k.pid = pid
	if k.spec.Timeout > 0 {
		k.deadline = time.Now().Add(k.spec.Timeout)
	}
	k.letGo()
	rest(keeperMemory)
	if os.Getpid() == 1 {
		runAhead() // a storm would not let it get as far as the sweep for seconds
	}
	k.ooms = oomKills()
	k.log.Info("process started", "command", k.res.Name, "pid", pid)
	if k.opt.Started != nil {
		k.opt.Started(pid)
	}
	return nil
}

// letGo drops what was the command's: a pipe is to break, and a directory to be
// unmounted, when the command lets go of it.
func (k *keeper) letGo() {
	keep := slices.Clone(k.opt.KeepFDs)
	if k.control < 0 {
		keep = append(keep, 2) // for what there may be to say
	}
	if k.tty != nil {
		keep = append(keep, k.tty.fd)
	}
	for _, fd := range append([]int{0, 1, 2}, k.opt.passed()...) {
		if !slices.Contains(keep, fd) {
			_ = unix.Close(fd)
		}
	}
	if err := unix.Chdir("/"); err != nil {
		k.log.Warn("working directory not left", "error", err)
	}
}

// watch goes on until the tree is empty, or given up.
func (k *keeper) watch() {
	for k.drain(k.next()); !k.over(); k.drain(k.next()) {
		// What is due may have cut a drain short, which is to go on before any wait.
		if now := time.Now(); k.phase == running && passed(k.deadline, now) {
			k.stop(DeadlineExceeded)
			continue
		} else if k.phase == stopping && passed(k.graceEnd, now) {
			k.sweep()
			return
		} else if passed(k.lookAgain, now) {
			k.tellOrphans()
			continue
		}
		signals, control := sigwait.Wait(k.next(), k.control)
		k.handle(signals)
		if control {
			k.obey()
		}
	}
}

func passed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// over reports whether the run has ended: nothing is left, or what is left is
// not to be waited for.
func (k *keeper) over() bool {
	return k.empty || k.ended && k.spec.Leftovers == LeftoversLeave
}

// next is when time, and not a signal, will make the next step.
func (k *keeper) next() time.Time {
	switch {
	case k.phase == running:
		return k.deadline
	case !k.lookAgain.IsZero() && k.lookAgain.Before(k.graceEnd):
		return k.lookAgain
	}
	return k.graceEnd
}

// drain reaps, and begins with the leftovers once the main process has ended. It
// leaves the rest for the next time when until has passed.
func (k *keeper) drain(until time.Time) {
	before := k.ended
	empty, err := k.reap.Drain(until)
	if err != nil {
		k.log.Error("wait failed", "error", err)
	}
	k.empty = empty
	tell := k.spec.Leftovers == LeftoversKill || k.spec.Leftovers == LeftoversWait && k.phase == stopping
	if tell && k.ended && !before && !k.empty && k.phase < killing {
		k.tellLeftovers()
	}
	if k.tty != nil && !k.ended {
		k.jobControl()
	}
}

func (k *keeper) orphanReaped(e reaper.Exit) {
	k.count(e)
	if k.debug {
		k.log.Debug("orphan reaped", "pid", e.Pid)
	}
}

// count adds a reaped process to the result.
func (k *keeper) count(e reaper.Exit) {
	k.res.add(e)
	k.reaped++
	var v victim
	if k.victims != nil {
		v = k.victims.reaped(e.Pid)
	}
	if k.lethal && !v.counted && e.Status.Signaled() && e.Status.Signal() == unix.SIGKILL {
		k.countKilled(v)
	}
}

func (k *keeper) countKilled(v victim) {
	k.res.Killed++
	if v.escaped {
		k.res.Escaped++
	}
}

// mainEnding is called while the main process is a zombie. As long as it is,
// its group is no other, so this is when the rest of the group can be reached
// in one step that no fork slips through.
func (k *keeper) mainEnding() {
	if k.spec.Leftovers != LeftoversKill || k.phase == killing {
		return
	}
	sig := k.spec.stopSignal()
	if sig == unix.SIGKILL {
		_ = unix.Kill(-k.pid, unix.SIGSTOP) // the sweep is next: it counts, then kills
		return
	}
	if k.told == 0 {
		k.told = proc.Ticks()
		k.warn(unix.Kill(-k.pid, sig), sig)
		k.warn(unix.Kill(-k.pid, unix.SIGCONT), unix.SIGCONT)
	}
}

func (k *keeper) mainEnded(e reaper.Exit) {
	k.main, k.ended = e, true
	k.oom = e.Status.Signaled() && e.Status.Signal() == unix.SIGKILL && !k.lethal && oomKills() > k.ooms
	k.count(e)
	elapsed := time.Since(k.res.StartedAt).Round(time.Millisecond).String()
	if e.Status.Signaled() {
		k.log.Info("process ended", "pid", e.Pid, "signal", sigwait.Name(e.Status.Signal()), "elapsed", elapsed)
	} else {
		k.log.Info("process ended", "pid", e.Pid, "exit_code", e.Status.ExitStatus(), "elapsed", elapsed)
	}
}

// finish takes the terminal back and completes the result.
func (k *keeper) finish(err error) {
	r := &k.res
	r.Duration = time.Since(r.StartedAt)
	r.Pid = k.pid
	if err != nil {
		r.Reason, r.ExitCode = StartFailed, startCode(err)
	} else {
		if !k.ended { // it could not be reaped: it has had SIGKILL all the same
			k.main.Status = unix.WaitStatus(unix.SIGKILL)
		}
		r.end(k.main.Status, k.why, k.oom)
	}
	if k.tty != nil {
		k.tty.close(k.pid, r.Signal != 0)
	}
	for _, s := range r.Survivors {
		k.log.Error("process survived", "pid", s.Pid, "name", s.Name, "uid", s.UID, "state", s.State, "reason", s.Reason)
	}
}

func startCode(err error) int {
	if e, ok := err.(*StartError); ok { //nolint:errorlint // made above, never wrapped
		return e.ExitCode
	}
	return CodeFailed
}

// warn says that a signal could not be sent. It is never a reason to end: the
// process may be another user's, and gone in a moment.
func (k *keeper) warn(err error, sig unix.Signal) {
	if err != nil && err != unix.ESRCH {
		k.log.Warn("signal not sent", "command", k.res.Name, "signal", sigwait.Name(sig), "error", err)
	}
}
