package exec

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// copying reads one pipe into a writer.
type copying struct {
	from  *os.File
	to    io.Writer
	ended atomic.Bool // the run has, and from has a deadline
	done  sync.WaitGroup
}

func newCopying(from *os.File, to io.Writer) *copying {
	o := &copying{from: from, to: to}
	o.done.Add(1)
	return o
}

func (o *copying) run() {
	defer o.done.Done()
	_, err := io.Copy(o.to, o.from)
	if o.ended.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		o.rest()
	} else if err != nil {
		// The writer failed: the command is not to wait for a full pipe.
		_, _ = io.Copy(io.Discard, o.from)
	}
}

// rest copies what is in the pipe now, not what somebody goes on to write.
func (o *copying) rest() {
	_ = o.from.SetReadDeadline(time.Time{})
	conn, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	var kept []byte
	_ = conn.Read(func(fd uintptr) bool {
		size, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		if err == nil && size > 0 {
			buf := make([]byte, size) // what a pipe holds: 64 KiB, 1 MiB at most
			n, _ := unix.Read(int(fd), buf)
			kept = buf[:max(0, n)]
		}
		return true
	})
	_, _ = o.to.Write(kept)
}

func (o *copying) finish(until time.Time) {
	o.ended.Store(true)
	_ = o.from.SetReadDeadline(until)
	o.done.Wait()
	o.from.Close()
}
