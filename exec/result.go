package exec

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/reaper"
)

// Reason is why a run ended, in Kubernetes' words where it has one.
type Reason string

// A run has exactly one of them.
const (
	Completed        Reason = "Completed"        // exit code 0
	Error            Reason = "Error"            // another exit code, or a signal
	DeadlineExceeded Reason = "DeadlineExceeded" // Timeout passed
	Stopped          Reason = "Stopped"          // told to, before it ended by itself
	StartFailed      Reason = "StartError"       // never ran
	OOMKilled        Reason = "OOMKilled"        // SIGKILL from the kernel, for want of memory
)

// Exit codes of foster's own, as GNU timeout and docker run have them.
const (
	CodeDeadline   = 124
	CodeFailed     = 125 // foster could not do its work
	CodeCannotExec = 126
	CodeNotFound   = 127
	CodeSignalBase = 128 // plus the number of the signal
)

// Result is how a run ended.
type Result struct {
	Name     string
	Attempt  int
	Pid      int // of the main process
	Reason   Reason
	ExitCode int         // the command's own, 128+n after signal n, 124 after the deadline
	Signal   unix.Signal // what ended the main process, 0 if nothing did

	StartedAt time.Time
	Duration  time.Duration // until the tree was empty

	// CPU time of every process of the tree that was reaped, and the largest
	// resident set of any, in bytes.
	UserTime, SystemTime time.Duration
	MaxRSS               int64

	Killed    int        // how many processes foster had to kill
	Escaped   int        // how many of them had left the main process's group
	Survivors []Survivor // what could not be killed
}

// Survivor is a process of the tree that was there when foster gave up.
type Survivor struct {
	Pid    int
	UID    int // effective; -1 if unknown
	Name   string
	State  string // the letter of ps(1)
	Reason string // why it could not be killed
}

func (s Survivor) String() string {
	return fmt.Sprintf("process %d (%s) of uid %d in state %s: %s", s.Pid, s.Name, s.UID, s.State, s.Reason)
}

// StartError says that the command never ran. ExitCode is 127 where the program
// was not found, 126 where it could not be executed, 125 for anything else.
type StartError struct {
	ExitCode int
	Err      error
	Hint     string // what to do, or empty
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, such as unix.ENOENT.
func (e *StartError) Unwrap() error { return e.Err }

// add counts what a reaped process had used.
func (r *Result) add(e reaper.Exit) {
	r.UserTime += e.UserTime()
	r.SystemTime += e.SystemTime()
	r.MaxRSS = max(r.MaxRSS, e.MaxRSS())
}

// end fills in how the main process ended. why is Completed unless foster had
// begun to stop it.
func (r *Result) end(status unix.WaitStatus, why Reason, oom bool) {
	r.Reason = why
	r.ExitCode = status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal()
		r.ExitCode = CodeSignalBase + int(r.Signal)
	}
	switch {
	case why == DeadlineExceeded:
		r.ExitCode = CodeDeadline
	case why == Stopped:
	case oom:
		r.Reason = OOMKilled
	case r.ExitCode != 0:
		r.Reason = Error
	}
}
