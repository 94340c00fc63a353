package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fosterinit/foster/exec"
)

const (
	createTimeout = time.Minute     // docker's engine, the image being there
	removeTimeout = time.Minute     // docker's engine
	lastOutput    = 5 * time.Second // for the command line client to notice that its container is gone
	pollPeriod    = 20 * time.Millisecond

	// A worker that is killed itself can remove nothing. Where the image's
	// entrypoint is foster, the container ends this long after its deadline.
	backstop = 5 * time.Second
)

// container is an attempt in a container, run by docker's command line client,
// which is a process tree of this machine like any other.
type container struct {
	task      *task
	workspace string
	name      string
	output    io.Writer

	scratch string // for cidfile, outside the workspace
	client  *host  // docker run; nil until started
	created bool   // the engine has the container under its name
}

// newContainer names the container after the workspace, which is unique.
func newContainer(t *task, workspace string, output io.Writer) *container {
	return &container{task: t, workspace: workspace, name: "foster-worker-" + filepath.Base(workspace), output: output}
}

// Start returns when the container exists, and not with ctx as long as the
// engine may be at work on it: what Kill removes must be there by then. An
// image is pulled before, which may take its time.
func (c *container) Start(ctx context.Context) error {
	if err := pull(ctx, c.task.Image); err != nil {
		return err
	}
	var err error
	if c.scratch, err = os.MkdirTemp("", "foster-worker-*"); err != nil {
		return fmt.Errorf("cannot start container: %v", err)
	}
	cidfile := filepath.Join(c.scratch, "cid")
	cmd := exec.Command("docker", c.arguments(cidfile)...)
	cmd.Stdin = strings.NewReader(strings.Join(environment(c.task, "/workspace"), "\n"))
	client := newProcess(cmd, c.output)
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("cannot start container: %v", err)
	}
	c.client = client
	return c.awaitCreated(cidfile)
}

// arguments pass the environment as a file on standard input. As arguments
// everybody could read it; in the client's own environment a task's DOCKER_HOST
// or LD_PRELOAD would act on the client; on disk it might stay.
func (c *container) arguments(cidfile string) []string {
	deadline := (c.task.timeout() + backstop).Round(time.Second)
	return append([]string{
		"run", "--rm", "--name", c.name, "--cidfile", cidfile, "--pull", "never",
		// Else what is in the workspace belongs to root, and a worker that is
		// not root could not remove it.
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		"--mount", "type=bind,source=" + c.workspace + ",target=/workspace", "--workdir", "/workspace",
		"--env", "FOSTER_TIMEOUT=" + deadline.String(), "--env", "FOSTER_GRACE_PERIOD=0",
		"--env-file", "/dev/stdin", c.task.Image,
	}, c.task.Command...)
}

// awaitCreated polls for the container's id: the client tells nobody else.
func (c *container) awaitCreated(cidfile string) error {
	for deadline := time.Now().Add(createTimeout); ; {
		var over bool
		select {
		case <-c.client.done:
			over = true
		case <-time.After(pollPeriod):
			over = time.Now().After(deadline)
		}
		if id, err := os.ReadFile(cidfile); err == nil && len(id) > 0 { // last, since a short task is over at once
			c.created = true
			return nil
		}
		if over {
			return fmt.Errorf("cannot create container %s: docker run made none", c.name)
		}
	}
}

// Wait returns what docker run ended with, which is the container's exit code.
func (c *container) Wait() (int, error) { return c.client.Wait() }

// Kill removes the container and then ends the client, so that the client can
// print what was left. If the engine never had the container the client goes
// first: the engine creates and starts at its request only, in two steps, so
// that what it is still creating will never run.
func (c *container) Kill() error {
	if c.client == nil {
		return os.RemoveAll(c.scratch)
	}
	var client error
	if !c.created {
		client = c.client.Kill()
	}
	removed := c.remove()
	if c.created {
		select {
		case <-c.client.done:
		case <-time.After(lastOutput):
		}
		client = c.client.Kill()
	}
	return errors.Join(removed, client, os.RemoveAll(c.scratch))
}

// remove asks until the engine says that there is no such container: with --rm
// it may be removing it already, and refuses the second request.
func (c *container) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	for {
		_, failed := docker(ctx, "rm", "--force", "--volumes", c.name)
		state, err := docker(ctx, "container", "inspect", "--format", "{{.State.Status}}", c.name)
		if noSuchContainer(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot remove container %s in %v: state %q: %v", c.name, removeTimeout, state, errors.Join(failed, err))
		case <-time.After(pollPeriod):
		}
	}
}
