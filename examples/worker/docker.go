package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fosterinit/foster/exec"
)

const maxAnswer = 64 << 10

// docker runs one short command of the client's to its end, or to ctx's, and
// returns what it printed. A client that hangs is killed like any other tree.
func docker(ctx context.Context, args ...string) (string, error) {
	stdout, stderr := &exec.Buffer{Max: maxAnswer}, &exec.Buffer{Max: maxAnswer}
	cmd := exec.Command("docker", args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.GracePeriod = 0
	res, err := cmd.Run(ctx)
	if err == nil && res.ExitCode != 0 {
		err = errors.New(strings.TrimSpace(string(stderr.Bytes())))
	}
	if err != nil {
		return "", fmt.Errorf("docker %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(stdout.Bytes())), nil
}

// noSuchContainer tells the engine's answer from no answer at all: the client
// ends with 1 in both cases, and an engine that is away proves nothing.
func noSuchContainer(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container")
}

// pull gets the image if it is not there, so that creating a container of it
// is a matter of moments.
func pull(ctx context.Context, image string) error {
	if _, err := docker(ctx, "image", "inspect", "--format", "{{.Id}}", image); err == nil {
		return nil
	}
	if _, err := docker(ctx, "pull", "--quiet", image); err != nil {
		return fmt.Errorf("cannot pull image: %w", err)
	}
	return nil
}
