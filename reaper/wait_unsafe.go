package reaper

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childInfo is the part of siginfo_t that waitid fills in. The union begins
// where a pointer may stand, so 64-bit machines have padding before it.
type childInfo struct {
	signo, errno, code int32
	_                  [unsafe.Sizeof(uintptr(0))/4 - 1]int32
	pid                int32
	uid                uint32
	status             int32
	_                  [100]byte
}

// waitid calls waitid(2), again where a signal interrupted it.
func waitid(idType, id, options int) (childInfo, error) {
	var info childInfo
	for {
		err := unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&info)), options, nil)
		if err != unix.EINTR {
			return info, err
		}
	}
}

// ended returns a child that has ended, and leaves it a zombie; 0 if there is
// none. __WALL: also children that clone(2) made without SIGCHLD.
//
// A child that has asked to be traced (PTRACE_TRACEME) is shown to its parent
// each time it stops, too, asked for or not. It goes on where it is, stopped as
// it would be below any other parent; what was to be seen of it is taken here.
func ended() (pid int, err error) {
	for {
		info, err := waitid(unix.P_ALL, 0, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL)
		if err != nil || info.pid == 0 || info.code != cldTrapped && info.code != cldStopped {
			return int(info.pid), err
		}
		if _, err := waitid(unix.P_PID, int(info.pid), unix.WSTOPPED|unix.WNOHANG|unix.WALL); err != nil {
			return 0, err
		}
	}
}

// Of si_code with SIGCHLD, sigaction(2).
const (
	cldTrapped = 4
	cldStopped = 5
)

func stopped(pid int) unix.Signal {
	info, err := waitid(unix.P_PID, pid, unix.WSTOPPED|unix.WNOHANG|unix.WALL)
	if err != nil || info.pid == 0 {
		return 0
	}
	return unix.Signal(info.status)
}

func wait(pid int) (Exit, error) {
	e := Exit{Pid: pid}
	for {
		_, err := unix.Wait4(pid, &e.Status, unix.WALL, &e.Rusage)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return e, fmt.Errorf("cannot wait for process %d: %w", pid, err)
		}
		return e, nil
	}
}

// maxPid is PID_MAX_LIMIT of 64-bit kernels; pids above the machine's own limit
// cost one failed call each.
const maxPid = 1 << 22

func isChild(pid int) bool {
	var info childInfo
	// Raw: the scheduler need not hear of four million calls that do not wait.
	_, _, errno := unix.RawSyscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid), uintptr(unsafe.Pointer(&info)),
		unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, 0, 0)
	return errno == 0
}
