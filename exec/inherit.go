package exec

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
)

const oomScoreFile = "/proc/self/oom_score_adj"

// inheriting calls fork while this process has what the command is to inherit
// from it: ForkExec has no place for these. The resource limits stay, which a
// keeper can live with; the other two are for the command alone.
func (s *Spec) inheriting(fork func() error) error {
	for _, l := range s.Limits {
		// Package syscall's, so that ForkExec does not give the old NOFILE limit back.
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Soft, Max: l.Hard}); err != nil {
			return notAllowed(fmt.Errorf("cannot set %s to %d:%d: %w", limitName(l.Resource), l.Soft, l.Hard, err), "CAP_SYS_RESOURCE")
		}
	}
	if s.OOMScoreAdj != nil {
		old, err := proc.ReadFile(oomScoreFile)
		if err == nil {
			err = writeOOMScore(strconv.Itoa(*s.OOMScoreAdj))
		}
		if err != nil {
			return notAllowed(fmt.Errorf("cannot set oom_score_adj to %d: %w", *s.OOMScoreAdj, err), "CAP_SYS_RESOURCE")
		}
		defer func() { _ = writeOOMScore(strings.TrimSpace(string(old))) }()
	}
	if s.Nice != nil {
		runtime.LockOSThread() // a nice value is a thread's
		defer runtime.UnlockOSThread()
		old, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, *s.Nice)
		}
		if err != nil {
			return notAllowed(fmt.Errorf("cannot set the nice value to %d: %w", *s.Nice, err), "CAP_SYS_NICE")
		}
		defer func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-old) }() // the system call's 1 to 40
	}
	return fork()
}

func writeOOMScore(text string) error {
	fd, err := unix.Open(oomScoreFile, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

func notAllowed(err error, capability string) error {
	e := &StartError{CodeFailed, err, ""}
	if errors.Is(err, os.ErrPermission) {
		e.Hint = "that takes " + capability
	}
	return e
}

func limitName(resource int) string {
	switch resource {
	case unix.RLIMIT_NOFILE:
		return "the limit on open files"
	case unix.RLIMIT_NPROC:
		return "the limit on processes"
	case unix.RLIMIT_CORE:
		return "the limit on core files"
	}
	return "limit " + strconv.Itoa(resource)
}
