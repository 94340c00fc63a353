package exec

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// eachDescriptor calls f with every open descriptor of the process, and some
// that are not open. Without /proc it tries all up to the limit.
func eachDescriptor(f func(fd int)) error {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			return err
		}
		for fd := range int(min(limit.Cur, 1<<20)) {
			f(fd)
		}
		return nil
	}
	defer unix.Close(dir)
	fds, err := listNumbers(dir)
	for _, fd := range fds {
		f(fd)
	}
	return err
}

func listNumbers(dir int) (numbers []int, err error) {
	buf := make([]byte, 1024)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return numbers, err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil {
				numbers = append(numbers, fd)
			}
		}
	}
}
