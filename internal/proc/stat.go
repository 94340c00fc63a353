// Package proc reads what /proc says of processes and of their children.
package proc

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is the part of /proc/PID/stat that foster uses (proc_pid_stat(5)).
type Stat struct {
	Pid       int
	State     byte // R S D T t Z X I
	Parent    int
	Group     int
	Session   int
	Threads   int
	StartTime uint64 // clock ticks since boot
}

// Tick is the unit of a StartTime, whatever the kernel's own clock runs at.
const Tick = 10 * time.Millisecond

// Ticks returns the time that a StartTime of now would have.
func Ticks() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 1
	}
	return uint64(ts.Nano() / int64(Tick))
}

// Dead reports whether the process has ended and only waits to be reaped. State
// Z alone does not say so: it is the main thread's, and others may run on.
func (s Stat) Dead() bool { return s.State == 'X' || s.State == 'Z' && s.Threads <= 1 }

// ParseStat parses the text of /proc/PID/stat. The name in it is the process's
// own choice and may hold blanks, parentheses and newlines: it ends at the last
// parenthesis. It does not allocate: a sweep calls it some thousand times.
func ParseStat(text []byte) (s Stat, ok bool) {
	open, closing := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || closing < open {
		return Stat{}, false
	}
	pid, ok := number(bytes.TrimSpace(text[:open]))
	if !ok {
		return Stat{}, false
	}
	s.Pid = int(pid)
	rest := text[closing+1:]
	for field := 3; field <= 22; field++ { // numbered as in the manual
		var word []byte
		word, rest = cut(rest)
		if !s.set(field, word) {
			return Stat{}, false
		}
	}
	return s, true
}

func (s *Stat) set(field int, word []byte) bool {
	var to *int
	switch field {
	case 3:
		if len(word) == 1 {
			s.State = word[0]
		}
		return len(word) == 1
	case 4:
		to = &s.Parent
	case 5:
		to = &s.Group
	case 6:
		to = &s.Session
	case 20:
		to = &s.Threads
	case 22:
		n, ok := number(word)
		s.StartTime = n
		return ok
	default:
		return len(word) > 0
	}
	n, ok := number(word)
	*to = int(n)
	return ok
}

// cut returns the next word of b and what follows it.
func cut(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " \n")
	if i := bytes.IndexAny(b, " \n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// number parses an unsigned decimal number that an int64 can hold.
func number(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
