package nstest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// Patience is how long a run may last, or a line may take to appear, before the test gives up.
const Patience = 4 * time.Minute

// drained is how long the test itself may take to read what a writer that is gone has left.
const drained = 3 * time.Second

// Run is foster at work.
type Run struct {
	t              testing.TB
	world          World
	program        string // what runs once the launcher has become it
	began          time.Time
	top            int // the namespace's init, as the test's own /proc numbers it
	stdout, stderr *stream
	ended          <-chan wire.Ended
	letGo          func() // ends the namespace of a run that has reported
}

// Expect waits until the command has printed this text.
func (r *Run) Expect(text string) *Run {
	r.t.Helper()
	if !r.stdout.expect(text, Patience) {
		r.t.Fatalf("never printed %q\n%s", text, r.scene())
	}
	return r
}

// ExpectError waits until this text is on stderr.
func (r *Run) ExpectError(text string) *Run {
	r.t.Helper()
	if !r.stderr.expect(text, Patience) {
		r.t.Fatalf("%q never was on stderr\n%s", text, r.scene())
	}
	return r
}

// Output is what has been printed by now.
func (r *Run) Output() string { return r.stdout.String() }

// Pid waits until the program has been executed and returns its pid, as the test's own /proc numbers it.
func (r *Run) Pid() int {
	r.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		candidates := []int{r.top}
		if !r.world.IsInit() {
			candidates = wire.Children("/proc", r.top)
		}
		for _, pid := range candidates {
			if r.isProgram(pid) {
				return pid
			}
		}
	}
	r.t.Fatalf("%s was never seen to run\n%s", r.program, r.scene())
	return 0
}

// isProgram says whether a process has been through its last exec: the launcher is the same pid before.
func (r *Run) isProgram(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && exe == r.program
}

// Signal sends the program a signal.
func (r *Run) Signal(s unix.Signal) *Run {
	r.t.Helper()
	if err := unix.Kill(r.Pid(), s); err != nil {
		r.t.Fatalf("cannot send %v: %v", s, err)
	}
	return r
}

// Processes lists the namespace as it sees itself; nothing until it has a /proc of its own, for what is mounted there
// before is the machine's.
func (r *Run) Processes() []wire.Process {
	proc := fmt.Sprintf("/proc/%d/root/proc", r.top)
	var own, machine unix.Stat_t
	if unix.Stat(proc, &own) != nil || unix.Stat("/proc", &machine) != nil || own.Dev == machine.Dev {
		return nil
	}
	all, err := wire.List(proc)
	if err != nil && !os.IsNotExist(err) {
		r.t.Error(err)
	}
	return all
}

// Until polls the namespace's processes until they are as wanted.
func (r *Run) Until(what string, wanted func([]wire.Process) bool) *Run {
	r.t.Helper()
	for end := time.Now().Add(Patience); !wanted(r.Processes()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never saw %s\n%s", what, r.scene())
		}
	}
	return r
}

// PidOf is the pid of the process with these arguments, as the test's own /proc numbers it.
func (r *Run) PidOf(args string) int {
	r.t.Helper()
	for todo := []int{r.top}; len(todo) > 0; todo = todo[1:] {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", todo[0])); unzero(text) == args {
			return todo[0]
		}
		todo = append(todo, wire.Children("/proc", todo[0])...)
	}
	r.t.Fatalf("no process %q\n%s", args, r.scene())
	return 0
}

func unzero(cmdline []byte) string {
	return strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
}

// AwaitGone waits until a process has ended, whether or not it has been waited for.
func (r *Run) AwaitGone(pid int) *Run {
	r.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return r
		}
	}
	r.t.Fatalf("process %d did not end\n%s", pid, r.scene())
	return r
}

// ExpectReport waits until this text is in the report file.
func (r *Run) ExpectReport(text string) *Run {
	r.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if report, _ := os.ReadFile(r.world.report); strings.Contains(string(report), text) {
			return r
		}
	}
	r.t.Fatalf("%q was never reported\n%s", text, r.scene())
	return r
}

// Wait waits for the end.
func (r *Run) Wait() *Outcome {
	r.t.Helper()
	select {
	case e := <-r.ended:
		return r.outcome(e)
	case <-time.After(Patience):
		r.t.Fatalf("did not come back\n%s", r.scene())
	}
	return nil
}

func (r *Run) outcome(e wire.Ended) *Outcome {
	r.t.Helper()
	if e.Err != "" {
		r.t.Fatalf("%s\n%s", e.Err, r.scene())
	}
	o := &Outcome{t: r.t, Ended: e, init: r.world.IsInit(), container: r.world.IsContainer()}
	// A writer that is gone has closed its pipe; the test's own reader may still have something to read.
	o.EOF = r.stdout.eof(drained) && r.stderr.eof(drained)
	o.Stdout, o.Stderr = r.stdout.String(), r.stderr.String()
	o.report = o.Stderr
	if r.world.report != "" {
		text, _ := os.ReadFile(r.world.report)
		o.report = string(text)
	}
	return o
}

// scene is what a failure should show.
func (r *Run) scene() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stdout: %q\nstderr: %q\n", r.stdout.String(), r.stderr.String())
	for i, p := range r.Processes() {
		if i == 20 {
			b.WriteString("...\n")
			break
		}
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// TrySignal sends the program a signal some time after it has started its first child, if it has not ended by then.
func (r *Run) TrySignal(s unix.Signal, after time.Duration) {
	r.t.Helper()
	pid := r.Pid() // a program that has ended is not reaped before the test has seen it run
	for r.isProgram(pid) && len(wire.Children("/proc", pid)) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	time.Sleep(after)
	if r.isProgram(pid) {
		_ = unix.Kill(pid, s)
	}
}
