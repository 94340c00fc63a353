package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

// Found by reading: each under the symptom it pins.

func TestADeadlineComesThoughNobodyReadsStderr(t *testing.T) {
	t.Parallel()
	read, write := pipe(t)
	fill(t, write)
	cmd := exec.Command(nstest.Foster(t), "-t", "0.3", "-g", "0", "--log-level", "debug", "--", "sleep", "7071")
	cmd.Stderr = write
	began := time.Now()
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 124 {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(began); took > nstest.Slow(10*time.Second) {
		t.Errorf("took %v", took)
	}
	_ = read
}

// fill writes to a pipe until it is full.
func fill(t *testing.T, write *os.File) {
	t.Helper()
	fd := int(write.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for _, err := unix.Write(fd, make([]byte, 4096)); err == nil; {
		_, err = unix.Write(fd, make([]byte, 4096))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}

func TestAFaultThatWasOnlySentIsForwarded(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, sig := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL} {
			r := w.Start(t, "--", "sh", "-c", "echo ready; exec sleep 7071").Expect("ready").Until("sleep", running("sleep 7071"))
			r.Signal(sig).Wait().Exits(128 + int(sig)).Clean().Ends("Error")
		}
	})
}

func TestAReportToAFIFOThatNobodyReadsIsAProblem(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text, _ := exec.Command(nstest.Foster(t), "--report", fifo, "--", "true").CombinedOutput()
	if !strings.Contains(string(text), fifo) {
		t.Errorf("said %q", text)
	}
}

func TestWithoutADescriptorToStartWithTheCodeIs125(t *testing.T) {
	t.Parallel()
	foster := nstest.Foster(t)
	for limit := 5; limit < 8; limit++ {
		text, err := exec.Command("prlimit", "--nofile="+string(rune('0'+limit)), foster, "--", "/bin/true").CombinedOutput()
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			code = exit.ExitCode()
		}
		if code != 0 && code != 125 {
			t.Errorf("limit %d: %d, %q", limit, code, text)
		}
	}
}

func TestAStopReachesLeftoversThatAreWaitedFor(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, target := range []string{"process", "group", "tree"} {
			r := w.Start(t, "--leftovers", "wait", "--signal-target", target, "-g", "60", "--",
				"sh", "-c", "setsid sleep 7071 & echo ready; exit 3").Expect("ready").Until("sleep", running("sleep 7071"))
			r.Until("the main process's end", func(all []wire.Process) bool {
				return !slices.ContainsFunc(all, func(p wire.Process) bool { return strings.HasPrefix(p.Args, "sh -c") })
			})
			r.Signal(unix.SIGTERM).Wait().Exits(3).Before(soon).Clean().Ends("Stopped")
		}
	})
}
