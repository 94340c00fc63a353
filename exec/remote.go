package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/fdio"
	"github.com/fosterinit/foster/reaper"
)

// Remote is a command with a keeper of its own, as Cmd is, in a program that
// waits for everything in one place: nothing here blocks or has a goroutine, and
// the keeper is a child of the program's Reaper. One goroutine may use it.
type Remote struct {
	reap   *reaper.Reaper
	keeper int
	conn   int
	main   int // pid
	kept   []byte
	ended  *ended
	log    *slog.Logger
	name   string
}

// Stdio are the descriptors that a command gets as 0, 1 and 2, and as Number
// (none if 0) the one that is to say that it is ready.
type Stdio struct {
	In, Out, Err  int
	Ready, Number int
}

// StartRemote starts a keeper for spec. gone is called inside Drain when the
// keeper has ended, before which Receive may say more.
func StartRemote(reap *reaper.Reaper, spec *Spec, io Stdio, log *slog.Logger, gone func()) (*Remote, error) {
	files := []uintptr{uintptr(io.In), uintptr(io.Out), uintptr(io.Err)}
	if io.Number > 0 {
		files = append(files, uintptr(io.Ready))
	}
	r := &Remote{reap: reap, log: log, name: spec.name()}
	_, err := reap.Start(func() (pid int, err error) {
		r.keeper, r.conn, err = forkKeeper(files)
		return r.keeper, err
	}, reaper.Child{Ended: func(reaper.Exit) { gone() }})
	if err != nil {
		return nil, err
	}
	// A keeper that does not read it is noticed by its end.
	_ = writeSpec(fdio.Writer{FD: r.conn, Wait: time.Second}, &wireSpec{Spec: *spec, ReadyFD: io.Number, Mark: Mark()})
	return r, nil
}

// Keeper returns the keeper's pid.
func (r *Remote) Keeper() int { return r.keeper }

// Pid returns the pid of the main process, 0 until Receive has learnt that it
// runs.
func (r *Remote) Pid() int { return r.main }

// FD returns the descriptor that is readable when Receive has something to do,
// -1 when there is nothing more to come.
func (r *Remote) FD() int { return r.conn }

// Receive takes what the keeper has said. It closes the connection at its end.
func (r *Remote) Receive() {
	buf := make([]byte, 4096)
	for r.conn >= 0 {
		n, _, err := unix.Recvfrom(r.conn, buf, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return
		case err != nil || n <= 0:
			r.Close()
		default:
			r.kept = append(r.kept, buf[:n]...)
			r.lines()
		}
	}
}

func (r *Remote) lines() {
	for {
		line, rest, whole := bytes.Cut(r.kept, []byte("\n"))
		if !whole {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err == nil {
			r.take(m)
		}
		r.kept = rest
	}
}

func (r *Remote) take(m message) {
	switch {
	case m.Started > 0:
		r.main = m.Started
	case m.Ended != nil:
		r.ended = m.Ended
	case m.Record != nil:
		args := make([]any, len(m.Record.Attrs))
		for i, a := range m.Record.Attrs {
			args[i] = a
		}
		r.log.With("command", r.name).Log(context.Background(), m.Record.Level, m.Record.Message, args...)
	}
}

// ErrKeeperDied is returned for a run whose keeper was killed: its tree is then
// the program's own to end, as far as it is a subreaper.
var ErrKeeperDied = errors.New("its keeper was killed")

// Result returns how the run ended, once the keeper has. The error is a
// *StartError if the command never ran.
func (r *Remote) Result() (*Result, error) {
	if r.ended == nil {
		return nil, fmt.Errorf("cannot learn how %s ended: %w", r.name, ErrKeeperDied)
	}
	return &r.ended.Result, r.ended.err()
}

// Stop begins the end of the run: the stop signal, the grace period, SIGKILL.
func (r *Remote) Stop(why Reason) {
	if why == DeadlineExceeded {
		r.order(orderDeadline)
	} else {
		r.order(orderStop)
	}
}

// Kill kills the tree.
func (r *Remote) Kill() { r.order(orderKill) }

// Signal sends sig to the signal target.
func (r *Remote) Signal(sig unix.Signal) { r.order(byte(sig)) }

// order also wakes a keeper that its command has stopped.
func (r *Remote) order(b byte) {
	if r.conn < 0 {
		return
	}
	_ = unix.Sendto(r.conn, []byte{b}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	_ = r.reap.Signal(r.keeper, unix.SIGCONT)
}

// Close ends the connection, and with it a run that goes on.
func (r *Remote) Close() {
	if r.conn >= 0 {
		_ = unix.Close(r.conn)
		r.conn = -1
	}
}
