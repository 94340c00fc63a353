package exec

import (
	"fmt"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// BecomeInit prepares the process to be what several Remote commands fall to,
// should a keeper die, and to be woken by nothing but them: it is a subreaper,
// lets go of every inherited descriptor from 3 up but keep, and the garbage
// collector rests until there is something worth collecting.
func BecomeInit(log *slog.Logger, keep []int) {
	settle()
	becomeSubreaper(log)
	closeInherited(log, keep)
	rest(initMemory)
	if os.Getpid() == 1 {
		runAhead()
	}
	if err := unix.Chdir("/"); err != nil {
		log.Warn("working directory not left", "error", err)
	}
}

// becomeSubreaper has the kernel give orphans of the tree to this process. PID 1
// gets them anyway.
func becomeSubreaper(log *slog.Logger) {
	if os.Getpid() == 1 {
		return
	}
	// A trapped call (SECCOMP_RET_TRAP) has no error, but does not return 0 either.
	result, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	if errno != 0 || result != 0 {
		err := error(errno)
		if errno == 0 {
			err = unix.ENOSYS
		}
		log.Warn("not a subreaper: a process that leaves its parent cannot be followed", "error", err)
	}
}

// closeInherited closes every descriptor from 3 up that this process was
// started with, but for keep. What the Go runtime and foster opened themselves
// is close-on-exec, and an inherited one cannot be.
func closeInherited(log *slog.Logger, keep []int) {
	err := eachDescriptor(func(fd int) {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && fd > 2 && flags&unix.FD_CLOEXEC == 0 && !slices.Contains(keep, fd) {
			_ = unix.Close(fd)
		}
	})
	for _, fd := range keep {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			log.Warn("descriptor not open", "fd", fd, "error", err)
		}
	}
	if err != nil {
		log.Warn("inherited descriptors not closed", "error", fmt.Errorf("cannot list them: %w", err))
	}
}
