package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// These roles run foster many times within one namespace: a namespace for each run would cost three times as much.

// patience is how long one run may last before it counts as hung.
const patience = 5 * time.Second

// harmless are the signals whose default is not the end of the process.
var harmless = []unix.Signal{
	unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU,
}

// codes FOSTER... checks every exit code and every signal that ends a process.
func codes(args []string) error {
	flags := flag.NewFlagSet("codes", flag.ContinueOnError)
	pid1 := flags.Bool("pid1", false, "each run is the init of a namespace of its own")
	every := flags.Int("every", 1, "of all codes and signals, check one in so many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var wrong []string
	check := func(want int, role string, n int) {
		if n%*every != 0 {
			return
		}
		argv := append(slices.Clone(flags.Args()), "--", self(), role, strconv.Itoa(n))
		if got := run(*pid1, argv...); got != want {
			wrong = append(wrong, fmt.Sprintf("%s %d: exit code %d, want %d", role, n, got, want))
		}
	}
	for code := range 256 {
		check(code, "exit", code)
	}
	for n := 1; n <= 64; n++ {
		if !slices.Contains(harmless, unix.Signal(n)) {
			check(128+n, "die", n)
		}
	}
	return verdict(wrong)
}

// downpour RUNS FOSTER... checks the codes of as many commands, each of which leaves a rain of orphans.
func downpour(args []string) error {
	runs, err := number(args)
	if err != nil {
		return err
	}
	var wrong []string
	for i := range runs {
		code := i * 7 % 256
		argv := append(slices.Clone(args[1:]), "--", "sh", "-c", "(: &); (: &); (: &); exit $1", "sh", strconv.Itoa(code))
		if got := run(false, argv...); got != code {
			wrong = append(wrong, fmt.Sprintf("run %d: exit code %d, want %d", i, got, code))
		}
	}
	return verdict(wrong)
}

// strike sends foster a signal a little after its start, or its command's, again and again.
func strike(args []string) error {
	var s striker
	flags := flag.NewFlagSet("strike", flag.ContinueOnError)
	times := flags.Int("n", 1, "runs")
	spread := flags.Duration("spread", 0, "the last run's delay; the first has none")
	number := flags.Int("signal", int(unix.SIGTERM), "")
	flags.StringVar(&s.program, "program", "", "count the delay from the moment this has been executed")
	flags.BoolVar(&s.child, "child", false, "count the delay from the moment the command exists")
	flags.BoolVar(&s.early, "early", false, "foster itself may die of the signal, if nothing had been started")
	flags.BoolVar(&s.pid1, "pid1", false, "each run is the init of a namespace of its own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s.signal, s.argv = unix.Signal(*number), flags.Args()
	var wrong []string
	for i := range *times {
		delay := *spread * time.Duration(i) / time.Duration(*times)
		if err := s.once(delay); err != nil {
			wrong = append(wrong, fmt.Sprintf("%v after %v: %v", s.signal, delay, err))
		}
	}
	return verdict(wrong)
}

type striker struct {
	child, early, pid1 bool
	program            string
	signal             unix.Signal
	argv               []string
}

// once runs foster with a command that the signal kills, so a lost signal is a run that does not end.
func (s striker) once(delay time.Duration) error {
	var stderr strings.Builder
	cmd := command(s.pid1, s.argv...)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.awaitStart(cmd.Process.Pid)
	spin(delay)
	_ = cmd.Process.Signal(s.signal)
	var stuck string
	rescue := time.AfterFunc(patience, func() {
		stuck = signalState(cmd.Process.Pid)
		_ = cmd.Process.Kill()
	})
	defer rescue.Stop()
	err := cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.ExitStatus() == 128+int(s.signal):
		return nil
	case s.early && status.Signaled() && status.Signal() == s.signal:
		return nil
	case s.early && s.pid1 && status.ExitStatus() == 2 && stderr.Len() == 0:
		return nil // how Go's runtime dies of a signal that the kernel keeps from an init
	case status.Signaled() && status.Signal() == unix.SIGKILL:
		return errors.New("lost: nothing had ended when patience did; " + stuck)
	}
	return fmt.Errorf("%v: %s", err, stderr.String())
}

// signalState is what a process does with signals, for the message that one was lost.
func signalState(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	var b strings.Builder
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Sig") || strings.HasPrefix(line, "Shd") {
			b.WriteString(strings.Join(strings.Fields(line), " ") + " ")
		}
	}
	return b.String()
}

// awaitStart looks without a pause: the first microseconds are the ones that count. As long as a program has no
// handler, the kernel throws away what is sent to it as PID 1, so there counting begins with that.
func (s striker) awaitStart(pid int) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		switch {
		case exe != s.program:
		case s.child && len(wire.Children("/proc", pid)) == 0:
		case s.pid1 && !s.caught(pid):
		default:
			return
		}
	}
}

func (s striker) caught(pid int) bool {
	_, mask, _ := strings.Cut(signalState(pid), "SigCgt: ")
	set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	return err == nil && set&(1<<(s.signal-1)) != 0
}

// spin is more exact than a sleep, which takes 60 µs at least.
func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// recur RUNS FOSTER... runs foster again and again beside children of its own that come and go, where pids recur. A
// child that was killed had somebody else's pid before.
func recur(args []string) error {
	runs, err := number(args)
	if err != nil {
		return err
	}
	var (
		over   = make(chan struct{})
		beside = make(chan error, 2)
		wrong  []string
	)
	for range cap(beside) { // enough to meet every pid; each ends when over is closed
		go func() { beside <- shortLives(over) }()
	}
	for range runs {
		if got := run(false, args[1:]...); got != 124 {
			wrong = append(wrong, fmt.Sprintf("exit code %d, want 124", got))
		}
	}
	close(over)
	for range cap(beside) {
		if err := <-beside; err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return verdict(wrong)
}

// shortLives starts children that end at once, one after the other.
func shortLives(over chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		default:
		}
		if err := exec.Command(self(), "exit", "0").Run(); err != nil {
			return fmt.Errorf("a bystander: %w", err)
		}
	}
}

func command(pid1 bool, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if pid1 {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	return cmd
}

// run returns the exit code, or minus the signal.
func run(pid1 bool, argv ...string) int {
	cmd := command(pid1, argv...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal())
	}
	return status.ExitStatus()
}

// self finds the helper also where /proc is another namespace's.
var self = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
})

// verdict is one error for all that went wrong, the first ones in words.
func verdict(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	shown := wrong[:min(len(wrong), 10)]
	return fmt.Errorf("%d wrong:\n%s", len(wrong), strings.Join(shown, "\n"))
}
