package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed testdata/*.c
var sources embed.FS

// prepare makes the binaries and the cgroup. What cannot be had on this machine is noted and leaves some figures unmeasured.
func (b *bench) prepare() error {
	dir, err := os.MkdirTemp("", "foster-bench-")
	if err != nil {
		return fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	b.dir = dir
	if b.foster == "" {
		if err := b.build(); err != nil {
			return err
		}
	}
	if b.foster, err = filepath.Abs(b.foster); err != nil {
		return fmt.Errorf("cannot find foster: %w", err)
	}
	if _, err := os.Stat(b.foster); err != nil {
		return fmt.Errorf("cannot find foster: %w", err)
	}
	if err := b.compile(); err != nil {
		return err
	}
	if os.Getuid() != 0 {
		b.noCage = fmt.Errorf("%w: needs root for a PID namespace and a pids cgroup", errUnavailable)
		return nil
	}
	b.group, b.noCage = newCgroup()
	return nil
}

// build makes the binary as a release has it: the figures are about that one, not about whatever lies around.
func (b *bench) build() error {
	b.foster = filepath.Join(b.dir, "foster")
	progress("building foster")
	cmd := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", b.foster,
		"github.com/fosterinit/foster/cmd/foster")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build foster: %w\n%s", err, out)
	}
	return nil
}

// compile makes the helpers. They are in C because a Go program cannot fork without exec, and because its runtime ends when a
// pids limit refuses it a thread.
func (b *bench) compile() error {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		b.noTool = fmt.Errorf("%w: gcc is missing, which the helpers need", errUnavailable)
		return nil
	}
	b.tools = make(map[string]string)
	for _, name := range []string{"spawn", "cage", "load"} {
		source := filepath.Join(b.dir, name+".c")
		data, err := sources.ReadFile("testdata/" + name + ".c")
		if err != nil {
			return err
		}
		if err := os.WriteFile(source, data, 0o600); err != nil {
			return fmt.Errorf("cannot write a helper: %w", err)
		}
		b.tools[name] = filepath.Join(b.dir, name)
		cmd := exec.CommandContext(b.ctx, gcc, "-O2", "-static", "-o", b.tools[name], source)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot compile %s.c: %w\n%s", name, err, out)
		}
	}
	return nil
}

// command is a helper that cannot outlive this program, and that Ctrl-C does not reach past it.
func (b *bench) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.tools[name], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Env = cleanEnv()
	return cmd
}

// cleanEnv is the environment without what would configure a program under test.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "FOSTER_") && !strings.HasPrefix(kv, "TINI_") && !strings.HasPrefix(kv, "GO") {
			env = append(env, kv)
		}
	}
	return env
}

func (b *bench) cleanUp() {
	if b.group != nil {
		b.group.remove()
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}
