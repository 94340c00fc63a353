package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fosterinit/foster/exec"
)

// worker runs tasks, one attempt after the other.
type worker struct {
	root      string // where workspaces are made
	keep      bool   // set those of failed attempts aside
	newTarget func(t *task, workspace string) killTarget
}

// result is what the worker prints.
type result struct {
	ID         string `json:"id"`
	Attempts   int    `json:"attempts"`
	ExitCode   int    `json:"exit_code"` // of the last attempt; 124 if it timed out
	TimedOut   bool   `json:"timed_out"`
	DurationMS int64  `json:"duration_ms"`         // of the last attempt
	Workspace  string `json:"workspace,omitempty"` // what the last attempt wrote, unless removed
}

// ended is how one attempt ended.
type ended struct {
	exitCode int
	timedOut bool
	err      error
}

// run makes attempts until one succeeds or none is left. An error means that
// the worker cannot say what is left of an attempt, or was told to stop; there
// is no further attempt then.
func (w *worker) run(ctx context.Context, t *task) (*result, error) {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		r, err := w.attempt(ctx, t, attempt)
		if err != nil {
			return nil, fmt.Errorf("cannot finish attempt %d of task %s: %w", attempt, t.ID, err)
		}
		r.DurationMS = time.Since(began).Milliseconds()
		slog.Info("attempt ended", "command", t.ID, "attempt", attempt, "exit_code", r.ExitCode)
		if r.ExitCode == 0 || attempt > t.Retries {
			return r, nil
		}
	}
}

// attempt has a workspace that no other attempt has seen. It is given up only
// when the target is proven gone: with a writer alive, the next attempt's
// files, or what is removed here, would not be what it seems.
func (w *worker) attempt(ctx context.Context, t *task, attempt int) (*result, error) {
	workspace, err := newWorkspace(w.root, t.ID)
	if err != nil {
		return nil, err
	}
	end := supervise(ctx, w.newTarget(t, workspace), t.timeout())
	if end.err != nil {
		return nil, fmt.Errorf("%w (its workspace %s is left as it is)", end.err, workspace)
	}
	r := &result{ID: t.ID, Attempts: attempt, ExitCode: end.exitCode, TimedOut: end.timedOut, Workspace: workspace}
	if end.exitCode != 0 || ctx.Err() != nil {
		r.Workspace, err = discard(workspace, w.keep)
	}
	if err == nil {
		err = ctx.Err()
	}
	return r, err
}

// supervise is the one road for every target: start, then the end or the
// deadline or ctx, then Kill, whichever it was.
func supervise(ctx context.Context, target killTarget, timeout time.Duration) ended {
	if err := target.Start(ctx); err != nil {
		return startFailed(err, target.Kill())
	}
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	waited := make(chan ended, 1)
	go func() { // ends with the attempt, which Kill sees to
		code, err := target.Wait()
		waited <- ended{exitCode: code, err: err}
	}()
	var end ended
	select {
	case end = <-waited:
	case <-bound.Done():
		end = ended{exitCode: exec.CodeDeadline, timedOut: true}
	}
	end.err = errors.Join(end.err, target.Kill())
	return end
}

// startFailed is the task's own failure if its program could not be run, and an
// error of the worker otherwise.
func startFailed(err, killed error) ended {
	var failure *exec.StartError
	if killed == nil && errors.As(err, &failure) && failure.ExitCode != exec.CodeFailed {
		slog.Error("attempt not started", "exit_code", failure.ExitCode, "reason", err)
		return ended{exitCode: failure.ExitCode}
	}
	return ended{err: errors.Join(err, killed)}
}
