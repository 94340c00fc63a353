package exec

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

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
	s.k.drain(time.Now().Add(sweepPause)) // some may have ended since
	list = slices.DeleteFunc(list, func(v Survivor) bool { return unix.Kill(v.Pid, 0) == unix.ESRCH })
	for _, v := range list {
		s.uncount(v.Pid)
	}
	return list
}

// uncount takes back that a process was killed.
func (s *sweep) uncount(pid int) {
	if v := s.victim[pid]; v.counted {
		s.k.res.Killed--
		if v.escaped {
			s.k.res.Escaped--
		}
	}
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
