package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fosterinit/foster/exec"
	"github.com/fosterinit/foster/internal/nstest"
)

// untidy says what it finds, leaves something that is hard to remove, and
// never ends.
const untidy = `n=$(ls -A | wc -l); mkdir d; echo x > d/file; chmod 0500 d; echo "found $n"; sleep 7071`

func TestARetryStartsInAFreshWorkspace(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		for name, keep := range map[string]bool{"the old one is removed": false, "the old one is kept": true} {
			t.Run(name, func(t *testing.T) {
				nstest.UntilProven(t, func(seconds float64) bool {
					f := newFixture(t, keep)
					task := &task{ID: "retry", Command: []string{"sh", "-c", untidy}, TimeoutSecs: seconds, Retries: 1, Image: image}
					checkTimedOut(t, await(t, f.start(t, task)), 2)
					checkWorkspaces(t, f, keep)
					found := f.output.String()
					if strings.ReplaceAll(found, "found 0\n", "") != "" {
						t.Errorf("the attempts found %q", found)
					}
					return strings.Count(found, "\n") == 2
				})
			})
		}
	})
}

func checkWorkspaces(t *testing.T, f *fixture, keep bool) {
	t.Helper()
	if len(f.workspaces) != 2 || f.workspaces[0] == f.workspaces[1] {
		t.Errorf("workspaces %v", f.workspaces)
	}
	for _, workspace := range f.workspaces {
		if _, err := os.Lstat(workspace); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("workspace %s is still in its place: %v", workspace, err)
		}
		if _, err := os.Lstat(filepath.Join(f.root, "kept", filepath.Base(workspace))); keep != (err == nil) {
			t.Errorf("workspace %s aside, with keep %v: %v", workspace, keep, err)
		}
	}
}

func TestASuccessEndsTheAttemptsAndItsWorkspaceStays(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		f := newFixture(t, false)
		task := &task{ID: "fine", Command: []string{"sh", "-c", "echo result > out"}, TimeoutSecs: 60, Retries: 3, Image: image}
		r := await(t, f.start(t, task))
		if r.ExitCode != 0 || r.Attempts != 1 || r.TimedOut {
			t.Errorf("got %+v: %s", *r, f.output.String())
		}
		if text, err := os.ReadFile(filepath.Join(r.Workspace, "out")); err != nil || string(text) != "result\n" {
			t.Errorf("in the workspace: %q, %v", text, err)
		}
	})
}

func TestAFailureIsRetriedAndItsExitCodeIsTheTasks(t *testing.T) {
	f := newFixture(t, false)
	r := await(t, f.start(t, &task{ID: "fails", Command: []string{"sh", "-c", "echo run; exit 9"}, TimeoutSecs: 60, Retries: 1}))
	if r.ExitCode != 9 || r.Attempts != 2 || r.TimedOut || f.output.String() != "run\nrun\n" {
		t.Errorf("got %+v, %q", *r, f.output.String())
	}
	r = await(t, f.start(t, &task{ID: "absent", Command: []string{"/no/such/program"}, TimeoutSecs: 60}))
	if r.ExitCode != exec.CodeNotFound || r.Workspace != "" {
		t.Errorf("got %+v", *r)
	}
}

// immortal is a target that cannot be ended, as a process in uninterruptible
// sleep or an engine that does not answer.
type immortal struct{ started chan struct{} }

var errImmortal = errors.New("cannot kill task: it is immortal")

func (i immortal) Start(context.Context) error { i.started <- struct{}{}; return nil }
func (i immortal) Wait() (int, error)          { select {} }
func (i immortal) Kill() error                 { return errImmortal }

func TestWithoutProofOfTheEndThereIsNoRetryAndTheWorkspaceStays(t *testing.T) {
	started := make(chan struct{}, 10)
	w := &worker{root: t.TempDir(), newTarget: func(*task, string) killTarget { return immortal{started} }}
	_, err := w.run(t.Context(), &task{ID: "immortal", TimeoutSecs: 0.01, Retries: 5})
	if !errors.Is(err, errImmortal) || len(started) != 1 {
		t.Errorf("%d attempts, error %v", len(started), err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "immortal-*")); len(left) != 1 {
		t.Errorf("workspaces: %v", left)
	}
}

func TestAWorkerThatIsStoppedDoesNotRetry(t *testing.T) {
	f, secret := newFixture(t, false), newSecret(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	task := writersTask("", secret, 600)
	task.Retries = 3
	failed := make(chan error, 1)
	go func() { // ended by stop, and received from below
		_, err := f.run(ctx, task)
		failed <- err
	}()
	eventually(t, "the writers hold the secret", func() bool { return len(nstest.Holders(t, secret)) >= len(files) })
	stop()
	if err := <-failed; !errors.Is(err, context.Canceled) || len(f.workspaces) != 1 {
		t.Errorf("%d attempts, error %v", len(f.workspaces), err)
	}
	if left := nstest.Holders(t, secret); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
	if _, err := os.Lstat(f.workspaces[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the workspace is still there: %v", err)
	}
}
