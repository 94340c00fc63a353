package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary plays the other programs. Each prints "ready" when it is what it is to be, and ends with its stdin.
var roles = map[string]func(arg string){
	"wait":      func(string) {},
	"named":     playNamed,
	"threads":   playThreads,
	"headless":  playHeadless,
	"namespace": playNamespace,
}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2])
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

func init() {
	if len(os.Args) == 3 && os.Args[1] == "headless" {
		runtime.LockOSThread() // main is to stay on the main thread, which is to end
	}
}

// playNamed gives the process a name, as /proc/PID/stat shows it.
func playNamed(name string) {
	// Of the main thread: /proc/PID is its.
	if err := os.WriteFile("/proc/self/comm", []byte(name), 0); err != nil {
		panic(err)
	}
}

// playThreads has each of some threads fork a child, and prints the pids.
func playThreads(count string) {
	n, err := strconv.Atoi(count)
	if err != nil {
		panic(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, null.Fd(), 2}}
	pids := make(chan int)
	for range n {
		go func() { // for as long as the process: a child goes with its thread to another
			runtime.LockOSThread()
			pid, err := syscall.ForkExec("/proc/self/exe", []string{"test", "wait", ""}, attr)
			if err != nil {
				panic(err)
			}
			pids <- pid
			select {}
		}()
	}
	for range n {
		fmt.Println(<-pids)
	}
}

// playHeadless ends the main thread while others run on.
func playHeadless(string) {
	go func() { // ends the process when its stdin ends
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// playNamespace, as PID 1 of a namespace, prints what Open thinks of /proc.
func playNamespace(mount string) {
	if mount == "own" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			panic(err)
		}
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			panic(err)
		}
	}
	_, err := Open()
	fmt.Println(err)
}

// A program is a role that runs until the test ends.
type program struct {
	pid   int
	lines []string // printed before ready
}

func play(t *testing.T, attr *syscall.SysProcAttr, role, arg string) program {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", role, arg)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, attr
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector's exit else takes a second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	p := program{pid: cmd.Process.Pid}
	for in := bufio.NewScanner(stdout); in.Scan(); p.lines = append(p.lines, in.Text()) {
		if in.Text() == "ready" {
			return p
		}
	}
	t.Fatalf("%s %s never was ready: %s", role, arg, strings.Join(p.lines, "; "))
	return p
}

func reader(t *testing.T) *Reader {
	t.Helper()
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return r
}
