package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// launch arranges what one command is to find when it starts, then becomes that command.
func launch(args []string) error {
	setup, err := parse(args)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	// The order matters: joining a cgroup and mounting need privileges and /proc, the mask must be last, because Go
	// may start a thread for anything before it.
	for _, step := range []func(wire.Setup) error{
		joinCgroups, busyDirectory, openFds, limitFiles, hideProc, refuseSubreaper, dropCapabilities, becomeUser, signals,
	} {
		if err := step(setup); err != nil {
			return err
		}
	}
	return syscall.Exec(path, args[1:], os.Environ())
}

func joinCgroups(setup wire.Setup) error {
	for _, dir := range setup.Cgroups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

func busyDirectory(setup wire.Setup) error {
	if setup.Busy == "" {
		return nil
	}
	if err := unix.Mount("tmpfs", setup.Busy, "tmpfs", 0, ""); err != nil {
		return err
	}
	fd, err := unix.Open(filepath.Join(setup.Busy, "held"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Dup3(fd, 9, 0); err != nil {
		return err
	}
	return os.Chdir(setup.Busy)
}

func openFds(setup wire.Setup) error {
	for _, fd := range setup.Fds {
		null, err := unix.Open("/dev/null", unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		if null == fd {
			continue
		}
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
		_ = unix.Close(null)
	}
	return nil
}

// limitFiles uses package syscall: its Setrlimit makes Go forget the limit that its Exec would restore.
func limitFiles(setup wire.Setup) error {
	if setup.NoFile == 0 {
		return nil
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = setup.NoFile
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// hideProc covers /proc with an empty directory. The namespace's own /proc stays below it.
func hideProc(setup wire.Setup) error {
	if !setup.NoProc {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("tmpfs", "/proc", "tmpfs", unix.MS_RDONLY, "")
}

// refuseSubreaper installs: if the call is prctl and its first argument PR_SET_CHILD_SUBREAPER, EPERM; else allow.
func refuseSubreaper(setup wire.Setup) error {
	if !setup.NoSubreaper && !setup.TrapSubreaper {
		return nil
	}
	refusal := unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	if setup.TrapSubreaper {
		refusal = unix.SECCOMP_RET_TRAP
	}
	const (
		load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET
		number, first    = 0, 16 // offsets in struct seccomp_data
	)
	filter := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_PRCTL, Jf: 3},
		{Code: load, K: first},
		{Code: equal, K: unix.PR_SET_CHILD_SUBREAPER, Jf: 1},
		{Code: ret, K: refusal},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// dropCapabilities clears the bounding set too: root gets everything in it back at exec.
func dropCapabilities(setup wire.Setup) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if len(setup.DropCaps) == 0 {
		return nil
	}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for _, c := range setup.DropCaps {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return err
		}
		bit := uint32(1) << (c % 32)
		data[c/32].Effective &^= bit
		data[c/32].Permitted &^= bit
		data[c/32].Inheritable &^= bit
	}
	return unix.Capset(&header, &data[0])
}

func becomeUser(setup wire.Setup) error {
	if setup.UID == 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(setup.UID, setup.UID, setup.UID); err != nil {
		return err
	}
	return syscall.Setresuid(setup.UID, setup.UID, setup.UID)
}

func signals(setup wire.Setup) error {
	for _, n := range setup.Ignore {
		signal.Ignore(syscall.Signal(n))
	}
	if len(setup.Block) == 0 {
		return nil
	}
	var mask unix.Sigset_t
	for _, n := range setup.Block {
		word := 8 * int(unsafe.Sizeof(mask.Val[0]))
		mask.Val[(n-1)/word] |= 1 << ((n - 1) % word)
	}
	return unix.PthreadSigmask(unix.SIG_BLOCK, &mask, nil)
}
