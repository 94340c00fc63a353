package supervisor

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
	"github.com/fosterinit/foster/internal/sigwait"
)

// A service is a command with the state of its life.
type service struct {
	*command
	sup   *supervisor
	index int // in start order
	state state

	job      *job // its run, nil between two
	preStop  *job // the PRE_STOP command, while it runs
	check    *readiness
	attempt  int
	restarts int
	backoff  time.Duration // before the next restart
	began    time.Time     // of the run
	executed bool          // it has run at least once
	asked    bool          // everything ends, so it is not restarted
	early    bool          // it was told to stop before it was known to run
	unready  bool          // it was stopped because it did not become ready
	why      exec.Reason   // what it is stopped for

	deadlineAt, graceAt, againAt time.Time // zero: none

	last    *exec.Result // of the last run
	lastErr error
	success bool
}

// start begins a run.
func (s *service) start() {
	s.attempt++
	s.againAt, s.unready, s.why, s.lastErr = time.Time{}, false, exec.Stopped, nil
	s.began = time.Now()
	spec := s.Spec
	spec.Attempt = s.attempt
	if s.Command.PreStop != nil {
		spec.Timeout = 0 // that comes first, and is this process's to start
	}
	j, check, err := s.sup.launch(s, &spec)
	if err != nil {
		s.state, s.lastErr = starting, &exec.StartError{ExitCode: exec.CodeFailed, Err: err}
		s.over()
		return
	}
	s.job, s.check, s.state = j, check, starting
}

// run notes that the main process runs.
func (s *service) run() {
	s.state, s.executed = running, true
	s.sup.log.Info("process started", "command", s.Name, "pid", s.job.remote.Pid(), "attempt", s.attempt)
	if t := time.Duration(s.Command.Timeout); t > 0 && s.Command.PreStop != nil {
		s.deadlineAt = s.began.Add(t)
	}
	if s.early {
		s.halt()
		return
	}
	if s.check == nil {
		s.state = ready
		return
	}
	s.check.begin()
}

func (s *service) becomeReady() {
	s.state = ready
	s.check.done()
	s.sup.log.Info("command ready", "command", s.Name, "elapsed", since(s.began))
}

func (s *service) failReadiness() {
	s.sup.log.Warn("command not ready, so it is stopped", "command", s.Name, "elapsed", since(s.began))
	s.unready = true
	s.halt()
}

func (s *service) expire() {
	s.why = exec.DeadlineExceeded
	s.halt()
}

// haltEarly is halt for a run of which nobody knows yet whether its main process
// has been executed: what it may have printed by then is for PRE_STOP to end.
func (s *service) haltEarly() {
	if s.early = s.hasPreStop(); !s.early {
		s.tell()
	}
}

func (s *service) hasPreStop() bool { return s.Command.PreStop != nil && s.Command.GracePeriod > 0 }

// halt begins the end of a run: PRE_STOP, then the stop signal, within the grace
// period.
func (s *service) halt() {
	s.deadlineAt = time.Time{}
	if s.check != nil {
		s.check.done()
	}
	if !s.hasPreStop() {
		s.tell()
		return
	}
	s.state = preStopping
	s.graceAt = time.Now().Add(time.Duration(s.Command.GracePeriod))
	spec := s.helper(s.Command.PreStop, time.Duration(s.Command.GracePeriod))
	j, err := s.sup.startHelper(spec)
	if err != nil {
		s.sup.log.Warn("pre-stop command not started", "command", s.Name, "error", err)
		s.tell()
		return
	}
	s.preStop = j
}

// helper is a command that runs for this one, as its user and where it is.
func (s *service) helper(argv []string, timeout time.Duration) *exec.Spec {
	return &exec.Spec{
		Name: s.Name + " helper", Args: argv, Env: s.Spec.Env, Dir: s.Spec.Dir, Umask: s.Spec.Umask,
		Credential: s.Spec.Credential, Timeout: timeout,
	}
}

// tell sends the stop signal; the keeper gives it the grace period.
func (s *service) tell() {
	s.state = stopping
	s.job.remote.Stop(s.why)
}

// kill ends the grace period.
func (s *service) kill() {
	s.graceAt = time.Time{}
	s.state = stopping
	s.job.remote.Kill()
}

// fall begins to end the tree that a dead keeper has left to this process.
func (s *service) fall() {
	s.sup.log.Error("keeper killed, ending its tree", "command", s.Name, "pid", s.job.remote.Keeper())
	s.clear()
	s.state = fallen
	s.againAt = time.Now()
	s.graceAt = s.againAt.Add(fallenBound)
}

// fallenBound is how long the tree of a dead keeper is killed before what is
// left of it is given up.
const fallenBound = 5 * time.Second

// clear ends what serves a run and no more.
func (s *service) clear() {
	s.deadlineAt, s.graceAt, s.againAt = time.Time{}, time.Time{}, time.Time{}
	if s.check != nil {
		s.check.done()
		s.check = nil
	}
	if s.preStop != nil {
		s.preStop.remote.Kill()
	}
}

// over takes the result of a run and decides what is next.
func (s *service) over() {
	s.clear()
	r, err := s.result()
	s.job = nil
	s.last, s.lastErr = r, err
	s.success = err == nil && !s.unready && r.Reason != exec.DeadlineExceeded &&
		(r.ExitCode == 0 || s.Command.SuccessExitCodes.Has(r.ExitCode))
	s.sup.record(s, r)
	policy := s.Command.RestartPolicy
	again := policy == RestartAlways || policy == RestartOnFailure && !s.success
	left := s.Command.MaxRestarts == 0 || s.restarts < int(s.Command.MaxRestarts)
	if s.sup.logs.end(s); !s.success && (s.asked || !again || !left) {
		s.sup.failures = append(s.sup.failures, s)
	}
	switch {
	case s.asked && !s.success:
		s.state = stopped
	case again && left && !s.asked:
		s.backOff(r.Duration)
	case s.success:
		s.state = completed
	default:
		s.state = failed
		s.sup.failedForGood(s)
	}
}

// result is how the run ended, with an account of this process's where a keeper
// died.
func (s *service) result() (*exec.Result, error) {
	if s.job != nil && s.job.ended == nil {
		r, err := s.job.remote.Result()
		if !errors.Is(err, exec.ErrKeeperDied) {
			return r, err
		}
	}
	r := &exec.Result{
		Name: s.Name, Attempt: s.attempt, Reason: exec.Error, ExitCode: exec.CodeFailed, StartedAt: s.began, Duration: time.Since(s.began),
	}
	if s.job == nil {
		r.Reason = exec.StartFailed
		return r, s.lastErr
	}
	r.Pid = s.job.remote.Pid()
	if e := s.job.ended; e != nil {
		if r.ExitCode = e.ExitStatus(); e.Signaled() {
			r.Signal = e.Signal()
			r.ExitCode = exec.CodeSignalBase + int(r.Signal)
		}
	}
	return r, nil
}

// backOff waits before the next run, twice as long each time.
func (s *service) backOff(lasted time.Duration) {
	c := &s.Command
	if s.backoff == 0 || lasted >= time.Duration(c.BackoffReset) {
		s.backoff = time.Duration(c.Backoff)
	}
	s.restarts++
	s.state = backingOff
	s.againAt = time.Now().Add(s.backoff)
	s.sup.log.Info("restarting", "command", s.Name, "attempt", s.attempt+1, "back_off", s.backoff.String())
	s.backoff = max(s.backoff, min(2*s.backoff, time.Duration(c.BackoffMax)))
}

// giveUp ends a command that does not run.
func (s *service) giveUp() {
	s.clear()
	s.state = stopped
	if s.last != nil && !s.success {
		s.sup.failures = append(s.sup.failures, s)
	}
}

// met reports whether the command is what another one needs it to be.
func (s *service) met(c Condition) bool {
	switch c {
	case Started:
		return s.executed
	case Ready:
		return s.state == ready || s.state == completed
	}
	return s.state == completed
}

// forward passes a signal on if the command has asked for it.
func (s *service) forward(sig unix.Signal) {
	for _, want := range s.Command.ForwardSignals {
		if unix.Signal(want) == sig && s.job != nil {
			s.sup.log.Debug("signal forwarded", "command", s.Name, "signal", sigwait.Name(sig))
			s.job.remote.Signal(sig)
		}
	}
}

func since(t time.Time) string { return time.Since(t).Round(time.Millisecond).String() }
