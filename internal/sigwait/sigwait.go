// Package sigwait catches signals without a thread or a goroutine.
//
// os/signal costs a hand-over between two threads for every signal that is
// asked for, a goroutine and two threads for good: with every signal that can
// be forwarded that is 4 ms before the first command runs, twice the rest of
// foster's start. Here the kernel calls a few instructions of assembly that set
// a mark and write to an eventfd; whoever reads it sees all marks.
//
// Like the signal dispositions it changes, the state belongs to the process:
// one goroutine of one program may use the package.
package sigwait

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Last is the highest signal number of Linux.
const Last = unix.Signal(64)

// Name returns the name of a signal, such as SIGTERM or SIGRTMIN+3; the realtime
// signals are numbered as the C library does, which keeps two for itself.
func Name(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	switch {
	case sig == RTMin:
		return "SIGRTMIN"
	case sig > RTMin:
		return "SIGRTMIN+" + strconv.Itoa(int(sig-RTMin))
	}
	return strconv.Itoa(int(sig))
}

// RTMin is the first realtime signal that the C library leaves to programs.
const RTMin = unix.Signal(34)

// Set is a set of signals.
type Set uint64

// Of returns the set of sigs.
func Of(sigs ...unix.Signal) Set {
	var s Set
	for _, sig := range sigs {
		s |= 1 << (sig - 1)
	}
	return s
}

// Has reports whether sig is in the set.
func (s Set) Has(sig unix.Signal) bool { return s&Of(sig) != 0 }

// All yields the signals of the set, lowest first.
func (s Set) All(yield func(unix.Signal) bool) {
	for ; s != 0; s &= s - 1 {
		if !yield(unix.Signal(bits.TrailingZeros64(uint64(s)) + 1)) {
			return
		}
	}
}

// For the assembly in handler_*.s, which runs on any thread at any time.
var (
	pending [Last + 1]uint32 // set there
	wakefd  int32            = -1
	//lint:ignore U1000 the assembly adds it to the eventfd
	one uint64 = 1
	//lint:ignore U1000 the assembly goes on there with a fault
	runtimeHandler uintptr
)

// faults are signals that the kernel sends a process for what it did itself, and
// that others can send it as well: those are recorded, the rest the runtime's.
// A SIGSYS of the kernel's is dropped: a seccomp filter has trapped a system
// call, which then returns no error, but not what it returns when it succeeds.
var faults = Of(unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS)

// Catch has the signals of set recorded from now on, and those of ignore
// discarded as by Ignore. SIGHUP and SIGINT that were ignored when the process
// started stay ignored, as nohup(1) means it. Programs that this process
// executes start with the default disposition of what is caught.
func Catch(set, ignore Set) error {
	if wakefd < 0 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return fmt.Errorf("cannot open an eventfd: %w", err)
		}
		wakefd = int32(fd)
	}
	for sig := range set.All {
		if (sig == unix.SIGHUP || sig == unix.SIGINT) && ignored(sig) {
			continue
		}
		if err := catch(sig); err != nil {
			return fmt.Errorf("cannot catch %v: %w", sig, err)
		}
	}
	return Ignore(ignore)
}

func catch(sig unix.Signal) error {
	if !faults.Has(sig) {
		return setHandler(sig, handlerPC())
	}
	// The runtime has one handler for all.
	if h := current(sig); h != faultHandlerPC() {
		runtimeHandler = h
	}
	return setHandler(sig, faultHandlerPC())
}

// Ignore has the signals of set discarded. Programs that this process executes
// inherit that, but for those that the Go runtime handles, such as SIGPIPE.
func Ignore(set Set) error { return setAll(set, sigIgn) }

// Reset gives the signals of set their default dispositions.
func Reset(set Set) error { return setAll(set, sigDfl) }

func setAll(set Set, handler uintptr) error {
	for sig := range set.All {
		if err := setHandler(sig, handler); err != nil {
			return fmt.Errorf("cannot set the disposition of %v: %w", sig, err)
		}
	}
	return nil
}

// Default gives sig its default disposition while f runs, then catches it again.
func Default(sig unix.Signal, f func()) error { return during(sig, sigDfl, f) }

// Ignoring ignores sig while f runs, then catches it again.
func Ignoring(sig unix.Signal, f func()) error { return during(sig, sigIgn, f) }

func during(sig unix.Signal, handler uintptr, f func()) error {
	if err := setHandler(sig, handler); err != nil {
		return err
	}
	f()
	return catch(sig)
}

// Wait returns the caught signals that have arrived since the last call, and
// whether fd (none if negative) is readable or hung up. It blocks until there
// is something to return or until the moment given; the zero Time is never.
// It may return early with nothing.
func Wait(until time.Time, fd int) (Set, bool) {
	fds := []unix.PollFd{{Fd: wakefd, Events: unix.POLLIN}, {Fd: int32(fd), Events: unix.POLLIN}}
	if fd < 0 {
		fds = fds[:1]
	}
	return Poll(until, fds), fds[len(fds)-1].Revents != 0 && fd >= 0
}

// Poll is Wait with any number of descriptors, as poll(2) has them; the first is
// the package's own. Where somebody has taken the right to poll away
// (RLIMIT_NOFILE), only signals are noticed.
func Poll(until time.Time, fds []unix.PollFd) Set {
	fds[0] = unix.PollFd{Fd: wakefd, Events: unix.POLLIN}
	if _, err := unix.Ppoll(fds, timeout(until), nil); err != nil {
		for i := range fds {
			fds[i].Revents = 0
		}
		if err != unix.EINTR {
			nap := time.Second // a signal ends it
			if !until.IsZero() {
				nap = min(nap, max(0, time.Until(until)))
			}
			ts := unix.NsecToTimespec(int64(nap))
			_ = unix.Nanosleep(&ts, nil)
		}
		return take()
	}
	if fds[0].Revents != 0 {
		var b [8]byte
		// Emptied before the marks are read: a signal that comes in between
		// costs one idle turn, never a lost one.
		_, _ = unix.Read(int(wakefd), b[:])
	}
	return take()
}

func timeout(until time.Time) *unix.Timespec {
	if until.IsZero() {
		return nil
	}
	// The seconds of 32-bit machines end at 68 years.
	ts := unix.NsecToTimespec(int64(max(0, min(time.Until(until), math.MaxInt32*time.Second))))
	return &ts
}

func take() Set {
	var s Set
	for i := range pending {
		if atomic.LoadUint32(&pending[i]) != 0 && atomic.SwapUint32(&pending[i], 0) != 0 {
			s |= 1 << (i - 1)
		}
	}
	return s
}
