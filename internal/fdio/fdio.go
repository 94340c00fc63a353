// Package fdio writes to descriptors that somebody else reads, or does not.
package fdio

import (
	"time"

	"golang.org/x/sys/unix"
)

// pipeBuf is what a pipe that poll calls writable takes without blocking
// (PIPE_BUF, pipe(7)).
const pipeBuf = 4096

// Writer writes to a descriptor with the plain system calls: os.File would need
// the poller, and ends the program where descriptor 1 or 2 is a pipe that nobody
// reads. A reader that has stopped reading is waited for, but not for ever: then
// Write fails with unix.EAGAIN. It can block where somebody else fills the same
// pipe in the moment between poll and write.
type Writer struct {
	FD   int
	Wait time.Duration // for each piece of at most 4 KiB
}

func (w Writer) Write(b []byte) (done int, err error) {
	size := AtOnce(w.FD)
	for done < len(b) {
		if err := w.await(); err != nil {
			return done, err
		}
		n, err := unix.Write(w.FD, b[done:min(len(b), done+size)])
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return done, err
		}
		done += max(n, 0)
	}
	return done, nil
}

// Lossy is a Writer for what may be lost: once the reader has not read for Wait,
// it is not waited for again until it has.
type Lossy struct {
	Writer
	stuck bool
}

func (l *Lossy) Write(b []byte) (int, error) {
	w := l.Writer
	if l.stuck {
		w.Wait = 0
	}
	n, err := w.Write(b)
	l.stuck = err == unix.EAGAIN
	return n, err
}

// AtOnce is how many bytes a descriptor that poll calls writable takes without
// blocking: a terminal is writable when there is room for one.
func AtOnce(fd int) int {
	if IsTerminal(fd) {
		return 1
	}
	return pipeBuf
}

// IsTerminal reports whether the descriptor is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// await waits until the descriptor is writable, however many signals come.
func (w Writer) await() error {
	for end := time.Now().Add(w.Wait); ; {
		left := max(0, time.Until(end)+time.Millisecond-1) // rounded up
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(w.FD), Events: unix.POLLOUT}}, int(left.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case ready == 0:
			return unix.EAGAIN
		default:
			return nil
		}
	}
}
