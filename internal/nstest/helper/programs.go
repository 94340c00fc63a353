package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exit N ends with that code.
func exit(args []string) error {
	n, err := number(args)
	if err == nil {
		os.Exit(n)
	}
	return err
}

// die N ends by that signal, if its default action is to end a process.
func die(args []string) error {
	n, err := number(args)
	if err != nil {
		return err
	}
	// The bit that says "dumped core" is not part of what is tested, and a core file is a mess.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	disposition(n, 0)
	if err := unix.Kill(unix.Getpid(), unix.Signal(n)); err != nil {
		return err
	}
	return fmt.Errorf("signal %d did not end me", n)
}

// mainExits leaves a process whose first thread is gone: state Z in /proc, and alive.
func mainExits([]string) error {
	signal.Ignore(unix.SIGTERM)
	go func() {
		for {
			stat, _ := os.ReadFile("/proc/self/stat")
			if strings.Contains(string(stat), ") Z ") {
				break
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println("ready")
		time.Sleep(life)
		os.Exit(0)
	}()
	// Syscall, not RawSyscall: the scheduler must know that this thread's place is free.
	_, _, err := syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	return err
}

// slowStop D needs the time D to clean up after a SIGTERM, and lets nothing hurry it.
func slowStop(args []string) error {
	took, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	fmt.Println("ready")
	<-term
	time.Sleep(took)
	fmt.Println("cleaned up")
	return nil
}

// bystander is nobody's business: it says so of every signal that reaches it.
func bystander([]string) error {
	all := make(chan os.Signal, 64)
	signal.Notify(all)
	fmt.Println("ready")
	for late := time.After(life); ; {
		select {
		case s := <-all:
			if s != unix.SIGURG { // the runtime's own
				fmt.Println("got", s)
			}
		case <-late:
			return nil
		}
	}
}

// trace PID attaches to a process and then never asks for its status, so nobody else can have it either.
func trace(args []string) error {
	pid, err := number(args)
	if err != nil {
		return err
	}
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	fmt.Println("ready")
	time.Sleep(life)
	return nil
}

// traceMe asks to be traced by its parent, which does not know of that, and stops.
func traceMe([]string) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); errno != 0 {
		return errno
	}
	fmt.Println("ready")
	return unix.Kill(unix.Getpid(), unix.SIGUSR1)
}

// moveGroup leaves its process group for its parent's, and says so of a SIGTERM.
func moveGroup([]string) error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	group, err := unix.Getpgid(unix.Getppid())
	if err != nil {
		return err
	}
	if err := unix.Setpgid(0, group); err != nil {
		return err
	}
	fmt.Println("ready")
	select {
	case <-told:
		fmt.Println("told")
		return nil
	case <-time.After(life):
		return fmt.Errorf("nobody told me")
	}
}

// neglect is a parent that does not wait: its child stays a zombie as long as it lives.
func neglect([]string) error {
	name := append([]byte("neglectful"), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptrOf(name), 0, 0, 0); err != nil {
		return err
	}
	disposition(int(unix.SIGCHLD), 0)
	child := rawFork()
	if child == 0 {
		rawExit()
	}
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil {
			return err
		}
		if strings.Contains(string(stat), ") Z ") {
			return ready(rawNow() + int64(life))
		}
		time.Sleep(time.Millisecond)
	}
}

// intrude is a setuid program that becomes its owner altogether, out of reach of the user who started it.
func intrude([]string) error {
	euid := unix.Geteuid()
	if err := syscall.Setresuid(euid, euid, euid); err != nil {
		return err
	}
	fmt.Println("ready", euid)
	time.Sleep(life)
	return nil
}

// eat takes memory until it is killed, and gives up at a gigabyte.
func eat([]string) error {
	var eaten [][]byte
	for range 256 {
		chunk := make([]byte, 4<<20)
		for i := 0; i < len(chunk); i += 4096 {
			chunk[i] = 1
		}
		eaten = append(eaten, chunk)
	}
	return fmt.Errorf("nobody minds %d chunks", len(eaten))
}
