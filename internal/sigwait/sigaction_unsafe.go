package sigwait

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's view of sigaction, include/linux/signal_types.h. riscv64 has no
// restorer; there the field is behind the mask and is not read.
const (
	sigDfl = 0
	sigIgn = 1

	saSiginfo  = 0x00000004
	saOnStack  = 0x08000000 // Go threads have a signal stack, goroutines no room
	saRestart  = 0x10000000
	saRestorer = 0x04000000
)

func handlerPC() uintptr
func faultHandlerPC() uintptr

func setHandler(sig unix.Signal, handler uintptr) error {
	sa := newSigaction(handler)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&sa)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ignored reports whether sig is ignored now. The Go runtime leaves SIGHUP and
// SIGINT as they were inherited, and replaces all others.
func ignored(sig unix.Signal) bool {
	return current(sig) == sigIgn
}

// current returns the handler of sig. The call cannot fail for a valid signal.
func current(sig unix.Signal) uintptr {
	var sa sigaction
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&sa)), 8, 0, 0)
	return sa.handler
}

// EmptyMask unblocks every signal for the calling thread, and so for what it
// forks. It reports whether any was blocked.
func EmptyMask() (blocked bool, err error) {
	var none, old uint64
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return old != 0, nil
}
