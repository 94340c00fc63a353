package exec

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/sigwait"
)

const (
	// sweepBound is how long a sweep tries before it reports survivors.
	sweepBound = 5 * time.Second
	// sweepPause is how long the first pass gives the killed to end; it doubles
	// up to sweepPauseMax. A process needs some 50 µs for it, a large one more.
	sweepPause    = 5 * time.Millisecond
	sweepPauseMax = 100 * time.Millisecond
	// namespacePass is the pass in which PID 1 freezes its whole namespace.
	namespacePass = 3
)

// A sweep kills the tree. Every pass freezes the closure of all descendants,
// then kills it, then reaps. Killing without freezing loses against processes
// that fork for ever: at the limit of processes each SIGKILL frees a place that
// another fork takes, and a SIGSTOP frees none.
type sweep struct {
	k      *keeper
	bound  time.Time
	victim map[int]victim
	denied map[int]error // what could not be signalled
}

// A victim has been frozen, and is to be killed.
type victim struct {
	start  uint64 // with the pid, which process it is
	killed bool
}

func (k *keeper) sweep() {
	k.phase = killing
	s := &sweep{k: k, bound: time.Now().Add(sweepBound), victim: make(map[int]victim), denied: make(map[int]error)}
	k.openTree()
	pause := sweepPause
	for pass := 0; ; pass++ {
		frozen := pass >= namespacePass && os.Getpid() == 1
		if frozen {
			_ = unix.Kill(-1, unix.SIGSTOP) // all but this process, in one step
		}
		s.pass()
		empty := s.reapFor(pause)
		if frozen {
			_ = unix.Kill(-1, unix.SIGCONT) // those that were not the command's
		}
		if empty {
			return
		}
		if !time.Now().Before(s.bound) {
			k.res.Survivors = s.survivors()
			return
		}
		pause = min(2*pause, sweepPauseMax)
	}
}

func (s *sweep) pass() {
	if !s.k.ended {
		// The group in one step: no fork of a member slips through.
		s.k.warn(s.k.reap.Signal(-s.k.pid, unix.SIGSTOP), unix.SIGSTOP)
	}
	for s.freeze() > 0 && time.Now().Before(s.bound) {
	}
	s.kill()
}

// freeze stops every process that it has not met yet and returns how many those
// were. When there are none, whatever is left in the tree stands still.
func (s *sweep) freeze() (fresh int) {
	s.k.walk(func(m member) {
		if _, known := s.known(m); known {
			return
		}
		fresh++
		if m.signal(unix.SIGSTOP) != nil {
			return // kill will say so
		}
		s.add(m)
	})
	return fresh
}

// add counts a process that foster has to kill.
func (s *sweep) add(m member) {
	s.victim[m.Pid] = victim{start: m.StartTime}
	s.k.res.Killed++
	if m.Group != s.k.pid {
		s.k.res.Escaped++
	}
}

// kill sends SIGKILL to everything in the tree.
func (s *sweep) kill() {
	if !s.k.ended {
		s.k.warn(s.k.reap.Signal(-s.k.pid, unix.SIGKILL), unix.SIGKILL)
	}
	s.k.walk(func(m member) {
		v, known := s.known(m)
		if known && v.killed {
			return
		}
		err := m.signal(unix.SIGKILL)
		if err != nil {
			s.deny(m.Pid, err)
			return
		}
		if !known {
			s.add(m)
		}
		s.victim[m.Pid] = victim{start: m.StartTime, killed: true}
	})
}

func (s *sweep) deny(pid int, err error) {
	if s.denied[pid] == nil {
		s.k.warn(err, unix.SIGKILL)
	}
	s.denied[pid] = err
}

func (s *sweep) known(m member) (victim, bool) {
	v, ok := s.victim[m.Pid]
	return v, ok && v.start == m.StartTime
}

// reapFor reaps until nothing is left, or the pause is over.
func (s *sweep) reapFor(pause time.Duration) (empty bool) {
	until := time.Now().Add(pause)
	for {
		s.k.drain()
		if s.k.empty || !time.Now().Before(until) {
			return s.k.empty
		}
		sigwait.Wait(until, -1) // SIGCHLD; all else has come too late
	}
}

// survivors names what is left and says why.
func (s *sweep) survivors() (list []Survivor) {
	files := s.k.tree.files
	s.k.tree.walk(func(m member) bool {
		v := Survivor{Pid: m.Pid, UID: -1, Name: "?", State: "?", Reason: "it has not ended"}
		if files != nil {
			v.UID, v.Name = files.UID(m.Pid), files.Name(m.Pid)
			v.State = string(rune(max(m.State, ' ')))
			v.Reason = s.reason(m)
		}
		list = append(list, v)
		return true
	})
	return list
}

func (s *sweep) reason(m member) string {
	files := s.k.tree.files
	tracer := files.Tracer(m.Pid)
	switch {
	case tracer != 0:
		return fmt.Sprintf("traced by process %d (%s)", tracer, files.Name(tracer))
	case m.Dead() && !m.direct:
		return fmt.Sprintf("zombie, and its parent %d (%s) does not wait for it", m.Parent, files.Name(m.Parent))
	case errors.Is(s.denied[m.Pid], unix.EPERM):
		return "no permission to signal it"
	case s.denied[m.Pid] != nil:
		return s.denied[m.Pid].Error()
	case m.State == 'D':
		return "in an uninterruptible system call"
	}
	return "killed, but has not ended"
}
