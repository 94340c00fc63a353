package reaper

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

const (
	pidMaxPath = "/proc/sys/kernel/pid_max"
	// Above the 300 pids that the kernel sets aside after the first round, so that about a hundred are in turn.
	smallPidMax = "400"
)

// A namespace in which pids recur after a hundred forks. Bystanders are born and die in it, children of a nursery that
// is no business of the reaper's and would tell if one were killed. They take up the numbers of children that have been
// reaped, and the reaper is asked to kill every number that it ever gave out.
func TestASignalNeverReachesAProcessThatHasInheritedAPid(t *testing.T) {
	nstest.NeedRoot(t)
	nstest.NeedKernel(t, 6, 14, "a pid_max for each namespace")
	before, err := os.ReadFile(pidMaxPath)
	if err != nil {
		t.Fatal(err)
	}
	if !aloneIn(t, unix.CLONE_NEWPID|unix.CLONE_NEWNS) {
		if after, err := os.ReadFile(pidMaxPath); err != nil || !bytes.Equal(before, after) {
			t.Errorf("pid_max outside was %s, is %s, %v", before, after, err)
		}
		return
	}
	narrow(t)
	died := make(map[int]bool) // by pid, as long as the reaper knows it
	recurred, refused := 0, 0
	r := New(func(e Exit) { t.Errorf("an orphan that there is not: %+v", e) })
	nursery, bystanders := startNursery(t, r)
	for end := time.Now().Add(patience); recurred < 300; {
		if time.Now().After(end) {
			t.Fatalf("pids recurred only %d times", recurred)
		}
		pid := start(t, r, exits, 0, Child{})
		if died[pid] {
			recurred++
		}
		died[pid] = true
		zombie(t, pid)
		drain(t, r)
		for pid := range died {
			switch err := r.Signal(pid, unix.SIGKILL); {
			case errors.Is(err, ErrNotChild):
				refused++
			default:
				t.Fatalf("signal for %d, which was reaped: %v", pid, err)
			}
		}
	}
	if err := r.Signal(nursery, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	zombie(t, nursery)
	drain(t, r)
	if tale := bystanders(); !strings.HasPrefix(tale, "all well") {
		t.Error(tale)
	}
	t.Logf("%d pids recurred, %d signals refused", recurred, refused)
}

// narrow gives the namespace few pids. The path means the namespace of the process that opens it.
func narrow(t *testing.T) {
	t.Helper()
	if os.Getpid() != 1 {
		t.Fatal("not in a namespace of its own")
	}
	if err := os.WriteFile(pidMaxPath, []byte(smallPidMax), 0); err != nil {
		t.Fatal(err)
	}
}

// startNursery starts the test binary as nursery. What it returns tells how the bystanders fared, once it has ended.
func startNursery(t *testing.T, r *Reaper) (pid int, tale func() string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{null.Fd(), write.Fd(), 2}}
	pid, err = r.Start(func() (int, error) { return syscall.ForkExec("/proc/self/exe", []string{"test", "nursery"}, attr) }, Child{})
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	line := make([]byte, 256)
	if n, err := read.Read(line); err != nil || string(line[:n]) != "ready\n" {
		t.Fatalf("the nursery said %q, %v", line[:n], err)
	}
	return pid, func() string {
		n, err := read.Read(line)
		if err != nil {
			return "the nursery ended without a word: " + err.Error()
		}
		return string(line[:n])
	}
}
