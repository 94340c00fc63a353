package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of a sweep, which makes some ten thousand of them while what
// it has to stop keeps all CPUs busy. They produce no garbage (unix.Open copies
// its string), and the scheduler is not told of them: it would wake another
// thread for each that takes longer than 20 µs. None of them waits for anything.

func open(name []byte, flags int) (int, error) {
	name = append(name, 0)
	at := unix.AT_FDCWD
	for {
		fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(at),
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

func readFD(fd int, buf []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	}
}

func closeFD(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// Pidfd is a process, however its number is used later; negative is none.
type Pidfd int

// OpenPidfd returns the process that has the pid now.
func OpenPidfd(pid int) (Pidfd, error) {
	fd, _, errno := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return Pidfd(fd), nil
}

// Signal sends sig, or with 0 only tries to.
func (p Pidfd) Signal(sig unix.Signal) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(p), uintptr(sig), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Close gives the descriptor back.
func (p Pidfd) Close() { closeFD(int(p)) }
