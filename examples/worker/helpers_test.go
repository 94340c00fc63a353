package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is far more than anything here needs; it only ends a test that hangs.
	patience = 3 * time.Minute

	// playWorker makes the test binary be the worker, for tests that end a process.
	playWorker = "WORKER_TEST_WORKER"
)

func TestMain(m *testing.M) {
	if os.Getenv(playWorker) != "" {
		main()
	}
	code := m.Run()
	removeImage()
	if left := children(); left != "" {
		fmt.Fprintf(os.Stderr, "children left, zombies counted: %s\n", left)
		code = 1
	}
	os.Exit(code)
}

func children() string {
	var all strings.Builder
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		all.Write(text)
	}
	return all.String()
}

// eachTarget runs a test of one sentence for both implementations.
func eachTarget(t *testing.T, test func(t *testing.T, image string)) {
	t.Run("host", func(t *testing.T) { test(t, "") })
	t.Run("container", func(t *testing.T) { test(t, needImage(t)) })
}

var secrets atomic.Int64

// newSecret is a value that no other process of the machine holds. What a
// failed test leaves behind ends with the test all the same.
func newSecret(t *testing.T) string {
	t.Helper()
	secret := fmt.Sprintf("secret-7071-%d-%d", os.Getpid(), secrets.Add(1))
	t.Cleanup(func() {
		for _, pid := range pids(t) {
			end(pid, secret)
		}
	})
	return secret
}

// end kills pid if it holds secret: looked at again through a pidfd, so that
// the signal never reaches a successor.
func end(pid int, secret string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if holds(pid, secret) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// holders are the processes of the machine, containers included, that have
// secret in their environment or arguments.
func holders(t *testing.T, secret string) []int {
	t.Helper()
	var found []int
	for _, pid := range pids(t) {
		if holds(pid, secret) {
			found = append(found, pid)
		}
	}
	return found
}

func holds(pid int, secret string) bool {
	for _, file := range []string{"environ", "cmdline"} {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
		if bytes.Contains(text, []byte(secret)) {
			return true
		}
	}
	return false
}

func pids(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// eventually polls for what no event announces.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// untilProven calls try with a longer deadline each time, for as long as the
// machine is too busy for the task to get anywhere before it.
func untilProven(t *testing.T, try func(seconds float64) (proven bool)) {
	t.Helper()
	for seconds := 2.0; seconds < patience.Seconds(); seconds *= 2 {
		if try(seconds) {
			return
		}
		t.Logf("the task got nowhere in %v s, which proves nothing", seconds)
	}
	t.Error("the task never got anywhere before its deadline")
}

// running waits until the task has all its processes. It returns false if the
// deadline was faster; the result is still to be received then.
func running(t *testing.T, secret string, results chan *result) bool {
	t.Helper()
	var over bool
	eventually(t, "the writers hold the secret", func() bool {
		select {
		case r := <-results:
			results <- r
			over = true
		default:
		}
		return over || len(holders(t, secret)) >= len(files)
	})
	return !over
}

// output collects what tasks print, from however many attempts.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// fixture is a worker that notes which targets it makes.
type fixture struct {
	worker
	output output

	mu         sync.Mutex
	workspaces []string
	containers []string
}

// container is the name of the first one, empty as long as there is none.
func (f *fixture) container() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.containers) == 0 {
		return ""
	}
	return f.containers[0]
}

func newFixture(t *testing.T, keep bool) *fixture {
	f := &fixture{worker: worker{root: t.TempDir(), keep: keep}}
	factory := newTarget(&f.output)
	f.newTarget = func(task *task, workspace string) killTarget {
		f.mu.Lock()
		defer f.mu.Unlock()
		target := factory(task, workspace)
		f.workspaces = append(f.workspaces, workspace)
		if c, ok := target.(*container); ok {
			f.containers = append(f.containers, c.name)
		}
		return target
	}
	return f
}

// start runs task; the result comes on the channel, nil after an error, which
// fails the test.
func (f *fixture) start(t *testing.T, task *task) chan *result {
	t.Helper()
	if err := task.validate(); err != nil {
		t.Fatal(err)
	}
	results := make(chan *result, 1)
	go func() { // ends with the task, which its deadline ends
		r, err := f.run(context.Background(), task)
		if err != nil {
			t.Error(err)
		}
		results <- r
	}()
	return results
}

func await(t *testing.T, results <-chan *result) *result {
	t.Helper()
	select {
	case r := <-results:
		if r == nil {
			t.FailNow()
		}
		return r
	case <-time.After(patience):
		t.Fatal("the worker did not return")
		return nil
	}
}

func checkTimedOut(t *testing.T, r *result, attempts int) {
	t.Helper()
	if !r.TimedOut || r.ExitCode != 124 || r.Attempts != attempts {
		t.Errorf("got %+v, want a timeout, 124, %d attempts", *r, attempts)
	}
}
