package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// writers keep writing to the workspace, each in another hiding place; all of
// them hold the environment, and the last one ignores what it can.
const writers = `
write() { while :; do echo x; sleep 0.02; done >> "$1"; }
write group &
setsid sh -c 'while :; do echo x; sleep 0.02; done >> session' &
(setsid sh -c 'while :; do echo x; sleep 0.02; done >> orphan' &)
(trap "" TERM HUP INT QUIT; write deaf)`

var files = []string{"group", "session", "orphan", "deaf"}

func writersTask(image, secret string, seconds float64) *task {
	return &task{
		ID: "writers", Command: []string{"sh", "-c", writers}, Env: map[string]string{"TOKEN": secret},
		TimeoutSecs: seconds, Image: image,
	}
}

func TestAfterATimeoutNothingWritesToTheWorkspace(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		nstest.UntilProven(t, func(seconds float64) bool {
			f := newFixture(t, true)
			r := await(t, f.start(t, writersTask(image, newSecret(t), seconds)))
			checkTimedOut(t, r, 1)
			checkSilent(t, r.Workspace)
			return allWrote(r.Workspace)
		})
	})
}

func allWrote(dir string) bool {
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(text) == 0 {
			return false
		}
	}
	return true
}

// checkSilent watches dir for as long as a living writer would write 25 times,
// then makes sure that the watch sees a write.
func checkSilent(t *testing.T, dir string) {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE); err != nil {
		t.Fatal(err)
	}
	if event(t, watch, 500*time.Millisecond) {
		t.Errorf("something writes to %s", dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "check"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !event(t, watch, patience) {
		t.Error("the watch sees nothing")
	}
}

func event(t *testing.T, watch int, within time.Duration) bool {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		left := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(watch), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) { // the runtime's signals
			if err != nil {
				t.Fatal(err)
			}
			return n > 0
		}
	}
}

func TestAfterATimeoutNobodyHoldsTheSecret(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		nstest.UntilProven(t, func(seconds float64) bool {
			f, secret := newFixture(t, false), newSecret(t)
			results := f.start(t, writersTask(image, secret, seconds))
			proven := running(t, secret, results)
			checkTimedOut(t, await(t, results), 1)
			if left := nstest.Holders(t, secret); len(left) > 0 {
				t.Errorf("processes %v hold the secret", left)
			}
			return proven
		})
	})
}

// The client, which runs beside the container, is not to hold it even before.
func TestTheSecretReachesTheTaskAlone(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		f, secret := newFixture(t, false), newSecret(t)
		t.Setenv("WORKERS_OWN", "secret of the worker")
		task := &task{ID: "env", Command: []string{"env"}, Env: map[string]string{"TOKEN": secret + " =$x"}, TimeoutSecs: 60, Image: image}
		if r := await(t, f.start(t, task)); r.ExitCode != 0 {
			t.Fatalf("got %+v: %s", *r, f.output.String())
		}
		text := f.output.String()
		if !strings.Contains(text, "TOKEN="+secret+" =$x\n") || strings.Contains(text, "WORKERS_OWN") || strings.Contains(text, "FOSTER_") {
			t.Errorf("the task's environment: %s", text)
		}
	})
}

func TestDockersClientNeverHoldsTheSecret(t *testing.T) {
	image := needImage(t)
	nstest.UntilProven(t, func(seconds float64) bool {
		f, secret := newFixture(t, false), newSecret(t)
		results := f.start(t, writersTask(image, secret, seconds))
		proven := running(t, secret, results)
		clients := nstest.Holders(t, f.container())
		for _, pid := range clients {
			if nstest.Holds(pid, secret) {
				t.Errorf("docker's client, process %d, holds the secret", pid)
			}
		}
		await(t, results)
		return proven && len(clients) > 0
	})
}

func TestAfterATimeoutTheContainerIsGoneByName(t *testing.T) {
	image := needImage(t)
	for name, command := range map[string]string{
		"it sleeps":           "sleep 7071",
		"it ignores signals":  `trap "" TERM HUP INT QUIT; while :; do sleep 1; done`,
		"it has many writers": writers,
	} {
		t.Run(name, func(t *testing.T) {
			nstest.UntilProven(t, func(seconds float64) bool {
				f := newFixture(t, false)
				task := &task{ID: "named", Command: []string{"sh", "-c", "echo up; " + command}, TimeoutSecs: seconds, Image: image}
				checkTimedOut(t, await(t, f.start(t, task)), 1)
				checkNoContainer(t, f.container())
				return f.output.String() == "up\n"
			})
		})
	}
}

func TestAContainerThatEndedByItselfIsGoneByNameToo(t *testing.T) {
	for code, command := range map[int]string{0: "echo done", 7: "echo done; exit 7", 127: ""} {
		t.Run(fmt.Sprint("exit code ", code), func(t *testing.T) {
			f := newFixture(t, false)
			task := &task{ID: "short", Command: []string{"sh", "-c", command}, TimeoutSecs: 60, Image: needImage(t)}
			if command == "" {
				task.Command = []string{"/no/such/program"}
			}
			r := await(t, f.start(t, task))
			if r.ExitCode != code || r.TimedOut || r.Attempts != 1 {
				t.Errorf("got %+v, want exit code %d: %s", *r, code, f.output.String())
			}
			if command != "" && f.output.String() != "done\n" {
				t.Errorf("output %q", f.output.String())
			}
			checkNoContainer(t, f.container())
		})
	}
}

// A worker that is told to stop while the engine is at work still knows what
// became of the container.
func TestAStopAtAnyMomentLeavesNoContainer(t *testing.T) {
	image := needImage(t)
	for delay := time.Duration(0); delay < 600*time.Millisecond; delay += 75 * time.Millisecond {
		f, secret := newFixture(t, false), newSecret(t)
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		if _, err := f.run(ctx, writersTask(image, secret, 60)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped after %v: %v", delay, err)
		}
		cancel()
		if name := f.container(); name != "" {
			checkNoContainer(t, name)
		}
		if left := nstest.Holders(t, secret); len(left) > 0 {
			t.Errorf("stopped after %v: processes %v hold the secret", delay, left)
		}
	}
}
