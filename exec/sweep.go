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
	// sweepBound is how long a sweep tries before it reports survivors. While
	// processes still end it goes on, up to sweepLimit: on a machine that
	// thousands keep busy the killing alone may take longer.
	sweepBound = 5 * time.Second
	sweepLimit = 30 * time.Second
	// patience is how long PID 1 tries to freeze the tree process by process,
	// before it freezes its namespace.
	patience = 50 * time.Millisecond
	// sweepPause is how long a pass gives the killed to end; it doubles up to
	// sweepPauseMax. A process needs some 50 µs for it, a large one more.
	sweepPause    = 5 * time.Millisecond
	sweepPauseMax = 100 * time.Millisecond
)

// A sweep kills the tree. Every pass freezes the closure of all descendants,
// then kills it, then reaps. Killing without freezing loses against processes
// that fork for ever: at the limit of processes each SIGKILL frees a place that
// another fork takes, and a SIGSTOP frees none.
type sweep struct {
	k      *keeper
	bound  time.Time
	limit  time.Time
	frozen bool // the whole namespace is
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
	k.openTree()
	// Ahead of what it has to stop, where that is allowed.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	now := time.Now()
	s := &sweep{
		k: k, bound: now.Add(sweepBound), limit: now.Add(sweepLimit),
		victim: make(map[int]victim), denied: make(map[int]error),
	}
	for pause := sweepPause; !s.pass(pause); pause = min(2*pause, sweepPauseMax) {
		now := time.Now()
		if passed(s.limit, now) || passed(s.bound, now) && s.ended() == 0 {
			k.res.Survivors = s.survivors()
			break
		}
	}
	if s.frozen {
		_ = unix.Kill(-1, unix.SIGCONT) // those that were not the command's
	}
}

// pass freezes, kills and reaps, and reports whether the tree is empty.
func (s *sweep) pass(pause time.Duration) (empty bool) {
	if !s.k.ended {
		// The group in one step: no fork of a member slips through.
		s.k.warn(s.k.reap.Signal(-s.k.pid, unix.SIGSTOP), unix.SIGSTOP)
	}
	s.freezeAll()
	s.kill()
	return s.reapFor(pause)
}

// freezeAll stops processes until a walk meets none that runs. PID 1 has a way
// to stop all others in one step, bystanders too; it takes it where that does
// not come to an end soon, and continues them when the tree is empty.
func (s *sweep) freezeAll() {
	init := os.Getpid() == 1
	s.k.tree.until = s.limit
	if init {
		s.k.tree.until = time.Now().Add(patience)
	}
	for !s.frozen && s.freeze() > 0 {
		if passed(s.k.tree.until, time.Now()) {
			s.frozen = init && unix.Kill(-1, unix.SIGSTOP) == nil
			break
		}
	}
	s.k.tree.until = s.limit
}

// freeze stops every process that it has not met yet and returns how many those
// were. When there are none, whatever is left in the tree stands still.
func (s *sweep) freeze() (fresh int) {
	s.k.walk(func(m member) {
		if _, known := s.known(m); known || s.denied[m.Pid] != nil {
			return
		}
		fresh++
		if err := m.signal(unix.SIGSTOP); err != nil {
			s.deny(m.Pid, err, unix.SIGSTOP)
			return
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
	if s.k.tree.files == nil && os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL) // nothing says what is whose
	}
	s.k.walk(func(m member) {
		v, known := s.known(m)
		if known && v.killed {
			return
		}
		err := m.signal(unix.SIGKILL)
		if err != nil {
			s.deny(m.Pid, err, unix.SIGKILL)
			return
		}
		if !known {
			s.add(m)
		}
		s.victim[m.Pid] = victim{start: m.StartTime, killed: true}
	})
}

// deny remembers what could not be signalled, and says so once.
func (s *sweep) deny(pid int, err error, sig unix.Signal) {
	if s.denied[pid] == nil {
		s.k.warn(err, sig)
	}
	s.denied[pid] = err
}

func (s *sweep) known(m member) (victim, bool) {
	v, ok := s.victim[m.Pid]
	return v, ok && v.start == m.StartTime
}

// ended returns how many processes have ended since the last call.
func (s *sweep) ended() int {
	n := s.k.reaped
	s.k.reaped = 0
	return n
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
	case m.Dead() && m.direct:
		return "traced by a process outside this PID namespace, which has yet to let go of it"
	case m.Dead():
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
