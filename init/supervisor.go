package supervisor

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
	"github.com/fosterinit/foster/internal/sigwait"
	"github.com/fosterinit/foster/reaper"
)

// A supervisor runs the commands of a plan. All of it happens on one goroutine,
// which waits for signals, descriptors and moments in one place.
type supervisor struct {
	plan     *Plan
	log      *slog.Logger
	reap     *reaper.Reaper
	table    table
	services []*service
	jobs     []*job // whatever has a keeper
	fallen   *exec.Fallen
	logs     *logs

	stopping bool // everything ends
	told     bool // by a signal, not because the work is done
	shutdown time.Time
	killed   bool       // the shutdown timeout is over
	cause    *service   // what failed first
	failures []*service // what did not end with a success, in the order of their ends

	fds     []unix.PollFd // the first is sigwait's
	sources []source      // what the others belong to
}

// A source is a descriptor that is waited for.
type source interface {
	interest() (fd int, events int16) // negative: none now
	ready()
}

// A job is a command with its keeper: a run, a probe, a PRE_STOP.
type job struct {
	remote *exec.Remote
	gone   bool             // the keeper has been reaped
	ended  *unix.WaitStatus // of the main process, where that fell to this one
}

func (j *job) interest() (int, int16) { return j.remote.FD(), unix.POLLIN }
func (j *job) ready()                 { j.remote.Receive() }

// supervise runs all commands and returns the container's exit code.
func (plan *Plan) supervise(log *slog.Logger, paint Paint) int {
	sup := &supervisor{plan: plan, log: log, table: lifecycle()}
	sup.reap = reaper.New(sup.orphanReaped)
	sup.fallen = exec.NewFallen(sup.reap, log)
	sup.logs = newLogs(paint)
	for i, c := range plan.commands {
		sup.services = append(sup.services, &service{command: c, sup: sup, index: i})
	}
	var keep []int
	if fd := plan.Config.Report.FD; fd > 0 {
		keep = append(keep, fd)
	}
	exec.BecomeInit(log, keep)
	sup.prepareStdin()
	for sup.advance(); !sup.over(); sup.advance() {
		sup.turn()
	}
	sup.logs.finish()
	code := sup.exitCode()
	if code != 0 {
		if err := WriteTermination(plan.Config.TerminationPath, sup.message()); err != nil {
			log.Warn("termination message not written", "error", err)
		}
	}
	return code
}

// turn waits for something to happen, and has it happen.
func (sup *supervisor) turn() {
	sup.fds, sup.sources = append(sup.fds[:0], unix.PollFd{}), sup.sources[:0]
	for _, j := range sup.jobs {
		sup.await(j)
	}
	for _, s := range sup.services {
		if s.check != nil {
			sup.await(s.check)
		}
	}
	for _, l := range sup.logs.sources() {
		sup.await(l)
	}
	sup.signals(sigwait.Poll(sup.next(), sup.fds))
	for i, src := range sup.sources {
		if sup.fds[i+1].Revents != 0 {
			src.ready()
		}
	}
	if _, err := sup.reap.Drain(time.Time{}); err != nil {
		sup.log.Error("wait failed", "error", err)
	}
	sup.news()
	sup.timers(time.Now())
}

func (sup *supervisor) await(s source) {
	if fd, events := s.interest(); fd >= 0 && events != 0 {
		sup.fds = append(sup.fds, unix.PollFd{Fd: int32(fd), Events: events})
		sup.sources = append(sup.sources, s)
	}
}

// signals: SIGTERM, SIGINT and SIGQUIT stop everything, a second SIGINT kills at
// once, and what is left goes to those that have asked for it.
func (sup *supervisor) signals(set sigwait.Set) {
	for sig := range set.All {
		switch sig {
		case unix.SIGTERM, unix.SIGQUIT:
			sup.stop(true)
		case unix.SIGINT:
			if sup.stopping && sup.told {
				sup.killAll()
			}
			sup.stop(true)
		case unix.SIGCHLD:
		default:
			for _, s := range sup.services {
				s.forward(sig)
			}
		}
	}
}

// stop ends everything: the main and init commands now, the sidecars one after
// the other when those have ended.
func (sup *supervisor) stop(told bool) {
	sup.told = sup.told || told
	if sup.stopping {
		return
	}
	sup.stopping = true
	sup.shutdown = time.Now().Add(time.Duration(sup.plan.Config.ShutdownTimeout))
	sup.log.Info("stopping", "told", told, "grace_period", time.Duration(sup.plan.Config.ShutdownTimeout).String())
	for _, s := range sup.services {
		s.asked = true
		if s.Command.Type != TypeSidecar {
			s.handle(stop)
		}
	}
}

// killAll ends every run at once.
func (sup *supervisor) killAll() {
	sup.killed = true
	for _, j := range sup.jobs {
		j.remote.Kill()
	}
}

// advance starts what may start, and begins the end when the work is done.
func (sup *supervisor) advance() {
	for changed := true; changed; {
		changed = false
		for _, s := range sup.services {
			if s.state == waiting && !s.asked && sup.mayStart(s) {
				s.handle(needsMet)
				changed = true
			}
		}
	}
	if !sup.stopping && sup.all(func(s *service) bool { return s.Command.Type != TypeMain || s.state.forGood() }) {
		sup.stop(false)
	}
	if sup.stopping && sup.all(func(s *service) bool { return s.Command.Type == TypeSidecar || s.state.forGood() }) {
		sup.stopSidecars()
	}
}

func (sup *supervisor) mayStart(s *service) bool {
	return !slices.ContainsFunc(s.needs, func(n need) bool { return !sup.of(n.on).met(n.until) })
}

func (sup *supervisor) of(c *command) *service {
	return sup.services[slices.Index(sup.plan.commands, c)]
}

func (sup *supervisor) all(is func(*service) bool) bool {
	return !slices.ContainsFunc(sup.services, func(s *service) bool { return !is(s) })
}

// stopSidecars stops the last one that has not ended, unless it is being stopped.
func (sup *supervisor) stopSidecars() {
	for _, s := range slices.Backward(sup.services) {
		if s.state.forGood() {
			continue
		}
		s.handle(stop)
		if !s.state.forGood() {
			return
		}
	}
}

// over reports whether nothing runs and nothing will.
func (sup *supervisor) over() bool {
	return sup.stopping && len(sup.jobs) == 0 && sup.all(func(s *service) bool { return s.state.forGood() })
}

// news has what keepers have said and how they ended happen to the commands.
func (sup *supervisor) news() {
	sup.jobs = slices.DeleteFunc(sup.jobs, func(j *job) bool {
		if j.gone {
			j.remote.Receive()
			j.remote.Close()
		}
		return j.gone
	})
	for _, s := range sup.services {
		if s.job != nil && s.state == starting && s.job.remote.Pid() > 0 {
			s.handle(launched)
		}
		if s.check != nil {
			s.check.look()
		}
		if j := s.preStop; j != nil && j.gone {
			s.preStop = nil
			if s.state == preStopping {
				s.handle(preStopped)
			}
		}
		if j := s.job; j != nil && j.gone && s.state != fallen {
			if _, err := j.remote.Result(); errors.Is(err, exec.ErrKeeperDied) {
				s.handle(keeperDied)
			} else {
				s.handle(ended)
			}
		}
	}
}

// next is when time will make something happen.
func (sup *supervisor) next() (at time.Time) {
	earliest := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if !sup.killed {
		earliest(sup.shutdown)
	}
	for _, s := range sup.services {
		earliest(s.deadlineAt)
		earliest(s.graceAt)
		earliest(s.againAt)
		if s.check != nil {
			earliest(s.check.at())
		}
	}
	return at
}

func (sup *supervisor) timers(now time.Time) {
	passed := func(t *time.Time) bool {
		if t.IsZero() || now.Before(*t) {
			return false
		}
		*t = time.Time{}
		return true
	}
	for _, s := range sup.services {
		if s.state == fallen {
			sup.endFallen(s, now)
			continue
		}
		if passed(&s.deadlineAt) {
			s.handle(deadline)
		}
		if passed(&s.graceAt) {
			s.handle(graceOver)
		}
		if passed(&s.againAt) {
			s.handle(waited)
		}
		if s.check != nil {
			s.check.tick(now)
		}
	}
	if !sup.killed && !sup.shutdown.IsZero() && !now.Before(sup.shutdown) {
		sup.log.Warn("shutdown timeout passed, killing all")
		sup.killAll()
	}
}

// endFallen kills what a dead keeper has left until nothing is found.
func (sup *supervisor) endFallen(s *service, now time.Time) {
	if now.Before(s.againAt) {
		return
	}
	left := sup.fallen.Pass(func(pid int) bool {
		return slices.ContainsFunc(sup.jobs, func(j *job) bool { return j.remote.Keeper() == pid })
	})
	if left > 0 && now.Before(s.graceAt) {
		s.againAt = now.Add(fallenPause)
		return
	}
	if left > 0 {
		sup.log.Error("processes survived", "command", s.Name, "count", left)
	}
	s.handle(ended)
}

// fallenPause is how long the killed are given to end before the next look.
const fallenPause = 5 * time.Millisecond

func (sup *supervisor) orphanReaped(e reaper.Exit) {
	for _, s := range sup.services {
		if s.job != nil && s.job.remote.Pid() == e.Pid {
			s.job.ended = &e.Status
		}
	}
	sup.log.Debug("orphan reaped", "pid", e.Pid)
}

// record reports a run.
func (sup *supervisor) record(s *service, r *exec.Result) {
	line := *r
	if s.success {
		line.ExitCode = 0
		if line.Reason == exec.Error {
			line.Reason = exec.Completed
		}
	}
	var failed *exec.StartError
	if errors.As(s.lastErr, &failed) {
		sup.log.Error("command not started", "command", s.Name, "error", s.lastErr, "hint", failed.Hint)
	}
	sup.log.Info("process ended", "command", s.Name, "pid", r.Pid, "reason", string(line.Reason), "exit_code", r.ExitCode, "attempt", r.Attempt)
	for _, v := range r.Survivors {
		sup.log.Error("process survived", "command", s.Name, "pid", v.Pid, "name", v.Name, "state", v.State, "reason", v.Reason)
	}
	if err := sup.plan.writeReport(&line); err != nil {
		sup.log.Warn("report not written", "error", err)
	}
}

// message says of each command that failed how it ended, the first cause first.
func (sup *supervisor) message() string {
	var lines []string
	if sup.cause != nil {
		lines = append(lines, sentence(sup.cause.last, sup.cause.lastErr))
	}
	for _, s := range sup.failures {
		if s != sup.cause {
			lines = append(lines, sentence(s.last, s.lastErr))
		}
	}
	return strings.Join(lines, "\n")
}

// failedForGood ends everything because of a main or init command, or of a
// sidecar that somebody waits for.
func (sup *supervisor) failedForGood(s *service) {
	needed := slices.ContainsFunc(sup.services, func(other *service) bool {
		return other.state == waiting && slices.ContainsFunc(other.needs, func(n need) bool { return n.on == s.command })
	})
	if s.Command.Type == TypeSidecar && !needed {
		sup.log.Warn("sidecar failed", "command", s.Name, "exit_code", s.last.ExitCode)
		return
	}
	if sup.cause == nil && !sup.stopping {
		sup.cause = s
	}
	sup.stop(false)
}

// exitCode is the container's: that of the first failure, else, where it was told
// to stop, that of the first main command that did not end with a success.
func (sup *supervisor) exitCode() int {
	if sup.cause != nil {
		return sup.cause.last.ExitCode
	}
	for _, s := range sup.services {
		if s.Command.Type == TypeMain && s.last != nil && !s.success {
			return s.last.ExitCode
		}
	}
	return 0
}
