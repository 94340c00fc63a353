package exec

import (
	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
)

// eachDescriptor calls f with every open descriptor of the process, and some
// that are not open. Without /proc it tries all up to the limit.
func eachDescriptor(f func(fd int)) error {
	if proc.Numbers("/proc/self/fd", f) == nil {
		return nil
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for fd := range int(min(limit.Cur, 1<<20)) {
		f(fd)
	}
	return nil
}
