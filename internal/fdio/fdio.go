// Package fdio writes to descriptors that somebody else reads, or does not.
package fdio

import (
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is what a pipe that poll calls writable takes without blocking
// (PIPE_BUF, pipe(7)).
const atOnce = 4096

// Writer writes to a descriptor with the plain system calls: os.File would need
// the poller, and ends the program where descriptor 1 or 2 is a pipe that nobody
// reads. A reader that has stopped reading is waited for, but not for ever: then
// Write fails with unix.EAGAIN.
type Writer struct {
	FD   int
	Wait time.Duration // for each 4 KiB
}

func (w Writer) Write(b []byte) (done int, err error) {
	for done < len(b) {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(w.FD), Events: unix.POLLOUT}}, int(w.Wait.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err == nil && ready == 0 {
			err = unix.EAGAIN
		}
		if err != nil {
			return done, err
		}
		n, err := unix.Write(w.FD, b[done:min(len(b), done+atOnce)])
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return done, err
		}
		done += max(n, 0)
	}
	return done, nil
}
