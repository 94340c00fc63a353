package reaper

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A child that ends in its first microseconds is the case that a reaper has to get right, and an exec takes longer than
// that. So children are forked by hand: what they run is raw system calls in nosplit functions, without a scheduler, a
// collector or the race detector.

// What a raw child does.
const (
	exits   = iota // with the code, at once
	sleeps         // until a signal ends it
	orphans        // leaves a child that exits with the code, and exits with 0
)

// rawFork forks a child. exitSignal is what its parent gets when it ends, usually SIGCHLD.
func rawFork(exitSignal unix.Signal, role, code int) (int, error) {
	pid, errno := rawChild(uintptr(exitSignal), role, uintptr(code))
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}

//go:nosplit
//go:norace
func rawChild(exitSignal uintptr, role int, code uintptr) (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, exitSignal, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	if role == orphans {
		if pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 || errno != 0 {
			code = uintptr(errno)
		}
	}
	if role == sleeps { // not an orphan, whose parent is to die
		syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	}
	for role == sleeps {
		ts := unix.Timespec{Sec: 3600}
		syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
