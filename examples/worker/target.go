package main

import (
	"context"
	"io"
)

// A killTarget is one attempt of a task, wherever it runs. The worker knows
// nothing else about it.
type killTarget interface {
	// Start begins the attempt. ctx bounds the start alone: an attempt that has
	// begun ends by itself or by Kill.
	Start(ctx context.Context) error

	// Wait returns the exit code when the attempt has ended. It is called once,
	// after a Start without error.
	Wait() (exitCode int, err error)

	// Kill ends the attempt and returns when nothing of it is left: no process,
	// no container of its name, nobody who holds its environment. It is called
	// once after every Start, whatever became of that and of the attempt, and
	// an error says what may be left.
	Kill() error
}

// newTarget chooses by the task alone. output gets what the task prints.
func newTarget(output io.Writer) func(t *task, workspace string) killTarget {
	return func(t *task, workspace string) killTarget {
		if t.Image != "" {
			return newContainer(t, workspace, output)
		}
		return newHost(t, workspace, output)
	}
}

// environment has the task's own variables. HOME and TMPDIR, unless it sets
// them, keep in the workspace what programs leave about.
func environment(t *task, workspace string) []string {
	merged := map[string]string{"HOME": workspace, "TMPDIR": workspace}
	for name, value := range t.Env {
		merged[name] = value
	}
	list := make([]string, 0, len(merged))
	for name, value := range merged {
		list = append(list, name+"="+value)
	}
	return list
}
