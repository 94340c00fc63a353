package supervisor

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"
)

// A readiness finds out whether a run has become ready, in the way that the
// command has chosen.
type readiness struct {
	s        *service
	over     bool
	failures int
	fd       int  // of READY_FD, -1 for none
	conn     int  // of READY_TCP, while it is tried
	probe    *job // of READY_EXEC, while it runs

	nextAt  time.Time // the next attempt; zero is none
	untilAt time.Time // the end of this one
}

// begin makes the first attempt, where one has to be made.
func (r *readiness) begin() {
	if r.fd < 0 {
		r.try()
	}
}

func (r *readiness) try() {
	c := &r.s.Command
	r.nextAt, r.untilAt = time.Time{}, time.Time{}
	if len(c.ReadyExec) == 0 {
		r.connect()
		return
	}
	j, err := r.s.sup.startHelper(r.s.helper(c.ReadyExec, time.Duration(c.ReadyTimeout)))
	if err != nil {
		r.s.sup.log.Warn("probe not started", "command", r.s.Name, "error", err)
		r.failed()
		return
	}
	r.probe = j
}

func (r *readiness) connect() {
	c := &r.s.Command
	family, to := unix.AF_INET, unix.Sockaddr(nil)
	if ip := c.ReadyTCP.Addr(); ip.Is4() {
		to = &unix.SockaddrInet4{Port: int(c.ReadyTCP.Port()), Addr: ip.As4()}
	} else {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(c.ReadyTCP.Port()), Addr: ip.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		r.s.sup.log.Warn("port not tried", "command", r.s.Name, "error", err)
		r.failed()
		return
	}
	r.conn = fd
	switch err := unix.Connect(fd, to); err {
	case nil:
		r.shown()
	case unix.EINPROGRESS:
		r.untilAt = time.Now().Add(time.Duration(c.ReadyTimeout))
	default:
		r.failed()
	}
}

func (r *readiness) shown() {
	if !r.over {
		r.s.handle(shownReady)
	}
}

// failed counts an attempt that did not show it.
func (r *readiness) failed() {
	r.hangUp()
	if r.over {
		return
	}
	r.failures++
	if most := int(r.s.Command.ReadyFailureThreshold); most > 0 && r.failures >= most {
		r.s.handle(notReady)
		return
	}
	r.nextAt = time.Now().Add(time.Duration(r.s.Command.ReadyPeriod))
}

func (r *readiness) interest() (int, int16) {
	if r.conn >= 0 {
		return r.conn, unix.POLLOUT
	}
	return r.fd, unix.POLLIN
}

func (r *readiness) ready() {
	if r.conn < 0 {
		r.read()
		return
	}
	code, err := unix.GetsockoptInt(r.conn, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code == 0 {
		r.shown()
		return
	}
	r.failed()
}

// read looks for the newline on READY_FD.
func (r *readiness) read() {
	buf := make([]byte, 256)
	n, err := unix.Read(r.fd, buf)
	switch {
	case err == unix.EINTR:
	case err == nil && bytes.IndexByte(buf[:max(n, 0)], '\n') >= 0:
		r.shown()
	case err != nil || n == 0:
		r.s.sup.log.Warn("descriptor closed without a newline, so the command is not ready", "command", r.s.Name)
		r.hangUp()
	}
}

// look has the end of a probe happen.
func (r *readiness) look() {
	j := r.probe
	if j == nil || !j.gone {
		return
	}
	r.probe = nil
	if res, err := j.remote.Result(); err == nil && res.ExitCode == 0 {
		r.shown()
		return
	}
	r.failed()
}

// at is when tick has something to do.
func (r *readiness) at() time.Time {
	if r.nextAt.IsZero() {
		return r.untilAt
	}
	return r.nextAt
}

func (r *readiness) tick(now time.Time) {
	switch {
	case r.over:
	case !r.untilAt.IsZero() && !now.Before(r.untilAt):
		r.failed()
	case !r.nextAt.IsZero() && !now.Before(r.nextAt):
		r.try()
	}
}

// done ends it, with a probe that runs.
func (r *readiness) done() {
	r.over = true
	r.hangUp()
	r.nextAt = time.Time{}
	if r.probe != nil {
		r.probe.remote.Kill()
	}
}

func (r *readiness) hangUp() {
	for _, fd := range []*int{&r.conn, &r.fd} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
	r.untilAt = time.Time{}
}
