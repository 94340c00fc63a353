package sigwait

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a process does with signals is the whole process's, so each test runs in a process of its own: the test binary
// again. Where a test wants another state at the start, or another program, the binary plays that too.
const (
	aloneVar = "SIGWAIT_TEST_ALONE"
	patience = 20 * time.Second
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "print-signals":
		printSignals()
	case len(os.Args) > 2 && os.Args[1] == "ignoring-hup-and-int":
		signal.Ignore(unix.SIGHUP, unix.SIGINT)
		panic(unix.Exec("/proc/self/exe", append([]string{"test"}, os.Args[2:]...), os.Environ()))
	default:
		os.Exit(m.Run())
	}
}

// alone runs the calling test in a process of its own and reports whether this is that process. before are arguments
// that come first, a role for example.
func alone(t *testing.T, before ...string) bool {
	t.Helper()
	if os.Getenv(aloneVar) == t.Name() {
		return true
	}
	args := append(before, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=60s")
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), aloneVar+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// printSignals prints the masks of /proc/self/status. A Go program has handlers, but it changes nothing that it found
// ignored or blocked.
func printSignals() {
	for _, name := range []string{"SigIgn", "SigBlk"} {
		fmt.Println(name, uint64(status(name)))
	}
}

// status is a set of signals from /proc/self/status.
func status(name string) Set {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		panic(err)
	}
	_, line, _ := strings.Cut(string(text), "\n"+name+":")
	line, _, _ = strings.Cut(line, "\n")
	n, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		panic(err)
	}
	return Set(n)
}

// until waits until all of want have come, and returns what did.
func until(t *testing.T, want Set) (got Set) {
	t.Helper()
	end := time.Now().Add(patience)
	for got&want != want {
		more, _ := Wait(end, -1)
		if !time.Now().Before(end) { // what comes now came unnoticed
			t.Fatalf("of %v, these came too late or never: %v", names(want), names(want&^got))
		}
		got |= more
	}
	return got
}

func names(s Set) (list []string) {
	for sig := range s.All {
		list = append(list, strconv.Itoa(int(sig)))
	}
	return list
}

func send(t *testing.T, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}

// childsSignals is what a program finds that this process executes.
func childsSignals(t *testing.T) map[string]Set {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, w.Fd(), 2}}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"test", "print-signals"}, attr)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Set{}
	for in := bufio.NewScanner(r); in.Scan(); {
		name, number, _ := strings.Cut(in.Text(), " ")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = Set(n)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	return found
}
