package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fosterinit/foster/exec"
)

// host is an attempt in a process tree of this machine.
type host struct {
	cmd  *exec.Cmd
	done chan struct{} // nil until started; closed when the tree is gone and the next two are set

	result *exec.Result
	err    error
}

func newHost(t *task, workspace string, output io.Writer) *host {
	cmd := exec.Command(t.Command[0], t.Command[1:]...)
	cmd.Dir = workspace
	// Nothing of the worker's own environment, where the worker's secrets may
	// be, except the way to programs.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environment(t, workspace)...)
	return newProcess(cmd, output)
}

func newProcess(cmd *exec.Cmd, output io.Writer) *host {
	cmd.Stdout, cmd.Stderr = output, output
	cmd.GracePeriod = 0 // the deadline is the task's own: who needs time to clean up ends before it
	return &host{cmd: cmd}
}

func (h *host) Start(ctx context.Context) error {
	// With ctx itself the library would kill the tree too; one of two is enough.
	if err := h.cmd.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	h.done = make(chan struct{})
	go func() { // ends with the tree
		defer close(h.done)
		h.result, h.err = h.cmd.Wait()
	}()
	return nil
}

func (h *host) Wait() (int, error) {
	<-h.done
	if h.result == nil {
		return 0, h.err
	}
	return h.result.ExitCode, h.err
}

func (h *host) Kill() error {
	if h.done == nil {
		return nil
	}
	if err := h.cmd.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill task: %v", err)
	}
	<-h.done
	if h.result == nil {
		return h.err
	}
	if n := len(h.result.Survivors); n > 0 {
		return fmt.Errorf("cannot kill task: %d survivors, first %v", n, h.result.Survivors[0])
	}
	return nil
}
