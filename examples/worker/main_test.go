package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// process is the test binary as the worker, the way a user starts it.
func process(t *testing.T, input string, args ...string) (cmd *osexec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd = osexec.Command(os.Args[0], args...)
	// A worker that is killed leaves its temporary files.
	cmd.Env = append(os.Environ(), playWorker+"=1", "TMPDIR="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), stdout, stderr
	return cmd, stdout, stderr
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// The README's task must work as it stands there.
func TestTheREADMEsTaskWorks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^    \{"id".*"command".*\}$`).Find(readme)
	if text == nil {
		t.Fatal("no task in README.md")
	}
	file := filepath.Join(t.TempDir(), "task.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	cmd, stdout, stderr := process(t, "", "-root", root, "-keep", file)
	code := exitCode(t, cmd.Run())
	var r result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s %s", err, stdout, stderr)
	}
	if code != 124 || !r.TimedOut || r.Attempts != 2 {
		t.Errorf("exit code %d, %+v: %s", code, r, stderr)
	}
	if kept, _ := filepath.Glob(filepath.Join(root, "kept", "*")); len(kept) != 2 {
		t.Errorf("kept: %v", kept)
	}
}

func TestTheExitCodeIsTheTasksOr125(t *testing.T) {
	for input, want := range map[string]int{
		`{"id":"a","command":["true"],"timeout_secs":60}`:                      0,
		`{"id":"a","command":["sh","-c","exit 3"],"timeout_secs":60}`:          3,
		`{"id":"a","command":["sleep","7071"],"timeout_secs":0.2}`:             124,
		`{"id":"a","command":["true"]}`:                                        125,
		`{"id":"../a","command":["true"],"timeout_secs":60}`:                   125,
		`{"id":"a","command":["true"],"timeout_secs":60,"image":"-v/:/host"}`:  125,
		`{"id":"a","command":["true"],"timeout_secs":60,"timeout":1}`:          125,
		`{"id":"a","command":["true"],"timeout_secs":60}{"id":"b"}`:            125,
		`{"id":"a","command":[],"timeout_secs":60}`:                            125,
		`{"id":"a","command":["true"],"timeout_secs":60,"retries":-1}`:         125,
		`{"id":"a","command":["true"],"timeout_secs":60,"env":{"A=B":"x"}}`:    125,
		`{"id":"a","command":["true"],"timeout_secs":60,"env":{"A":"\u0000"}}`: 125,
	} {
		cmd, _, stderr := process(t, input, "-root", t.TempDir())
		if got := exitCode(t, cmd.Run()); got != want {
			t.Errorf("%s: exit code %d, want %d: %s", input, got, want, stderr)
		}
	}
}

func TestAMessageNamesVariablesAndNeverTheirValues(t *testing.T) {
	task := &task{ID: "a", Image: "i", Env: map[string]string{"TOKEN": "se\ncret", "B-C": "secret"}}
	err := task.validate()
	for _, want := range []string{`"TOKEN"`, `"B-C"`, "command is empty", "timeout_secs"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "cret") {
		t.Errorf("a secret is in the message: %v", err)
	}
}

func TestSIGTERMToTheWorkerEndsItsTask(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		secret, root := newSecret(t), t.TempDir()
		cmd, _, stderr := startWithWriters(t, root, image, secret, 600)
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd.Wait()); code != codeFailed || !strings.Contains(stderr.String(), "context canceled") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		if left := nstest.Holders(t, secret); len(left) > 0 {
			t.Errorf("alive: %v", left)
		}
		if left, _ := os.ReadDir(root); len(left) > 0 {
			t.Errorf("left in the root: %v", left)
		}
	})
}

// A worker that is killed can do nothing itself: on the host the keeper
// notices, and in the container foster has the deadline too.
func TestAWorkerThatIsKilledLeavesNothingThatRuns(t *testing.T) {
	eachTarget(t, func(t *testing.T, image string) {
		secret, root := newSecret(t), t.TempDir()
		cmd, _, _ := startWithWriters(t, root, image, secret, 20)
		name := containerOf(t, root)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		eventually(t, "nobody holds the secret", func() bool { return len(nstest.Holders(t, secret)) == 0 })
		if image != "" {
			eventually(t, "the container is gone", func() bool { return strings.Contains(containerState(name), "No such container") })
			eventually(t, "docker's client is gone", func() bool { return len(nstest.Holders(t, name)) == 0 })
		}
	})
}

func startWithWriters(t *testing.T, root, image, secret string, timeout float64) (cmd *osexec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(writersTask(image, secret, timeout))
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr = process(t, string(text), "-root", root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	eventually(t, "the writers hold the secret", func() bool { return len(nstest.Holders(t, secret)) >= len(files) })
	return cmd, stdout, stderr
}

func containerOf(t *testing.T, root string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "writers-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("workspaces %v, %v", found, err)
	}
	return "foster-worker-" + filepath.Base(found[0])
}
