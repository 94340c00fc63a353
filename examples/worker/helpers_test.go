package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fosterinit/foster/internal/nstest"
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
	os.Exit(nstest.Childless(code))
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
	nstest.Marked(t, secret)
	return secret
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
		return over || len(nstest.Holders(t, secret)) >= len(files)
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
