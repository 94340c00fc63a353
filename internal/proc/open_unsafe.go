package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// open opens a file for reading. unix.Open takes a string, which it copies: a
// sweep opens some thousand files, and is not to produce garbage.
func open(name []byte, flags int) (int, error) {
	name = append(name, 0)
	at := unix.AT_FDCWD
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at),
			uintptr(unsafe.Pointer(&name[0])), uintptr(flags|unix.O_CLOEXEC|unix.O_LARGEFILE), 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return -1, errno
		}
		return int(fd), nil
	}
}
