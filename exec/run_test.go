package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestARunHasTheCommandsCodeReasonAndOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		code   int
		signal unix.Signal
		reason Reason
	}{
		{"echo out", 0, 0, Completed},
		{"echo out; exit 7", 7, 0, Error},
		{"echo out; exit 255", 255, 0, Error},
		{"echo out; kill -TERM $$", 143, unix.SIGTERM, Error},
		{"echo out; kill -KILL $$", 137, unix.SIGKILL, Error},
	} {
		res, out := run(t, sh(c.script))
		if res.ExitCode != c.code || res.Signal != c.signal || res.Reason != c.reason || out != "out\n" {
			t.Errorf("%s: got %+v and %q", c.script, res, out)
		}
		if res.Pid <= 0 || res.Name != "sh" || res.StartedAt.IsZero() || res.Duration <= 0 || res.MaxRSS < 1<<16 {
			t.Errorf("%s: not filled in: %+v", c.script, res)
		}
		if res.Killed != 0 || res.Escaped != 0 || len(res.Survivors) != 0 {
			t.Errorf("%s: something was killed: %+v", c.script, res)
		}
	}
}

func TestACommandThatCannotBeStartedSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "echo no first line", 0o755)
	text := file("text", "hello", 0o644)
	script := file("script", "#!/no/such/interpreter\n", 0o755)
	for _, c := range []struct {
		name  string
		code  int
		cause error
		hint  bool
	}{
		{"/no/such/program", CodeNotFound, unix.ENOENT, false},
		{text + "/below", CodeNotFound, unix.ENOTDIR, false},
		{"no-such-program", CodeNotFound, unix.ENOENT, true},
		{script, CodeNotFound, unix.ENOENT, true},
		{text, CodeCannotExec, unix.EACCES, false},
		{dir, CodeCannotExec, unix.EISDIR, false},
		{plain, CodeCannotExec, unix.ENOEXEC, true},
	} {
		res, err := Command(c.name).Run(t.Context())
		failed := startError(t, c.name, err, c.code, c.cause)
		if failed == nil {
			continue
		}
		if (failed.Hint != "") != c.hint || !strings.Contains(failed.Error(), c.name) {
			t.Errorf("%s: %v; hint: %s", c.name, failed, failed.Hint)
		}
		if res == nil || res.ExitCode != c.code || res.Reason != StartFailed {
			t.Errorf("%s: result %+v", c.name, res)
		}
	}
}

func startError(t *testing.T, what string, err error, code int, cause error) *StartError {
	t.Helper()
	var failed *StartError
	if !errors.As(err, &failed) || failed.ExitCode != code || !errors.Is(err, cause) {
		t.Errorf("%s: %#v, want exit code %d, %v", what, err, code, cause)
		return nil
	}
	return failed
}

func TestSomethingThatCannotBeExecutedDoesNotEndTheSearchInPATH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/tool": 0o644, "b/tool": 0o755, "a/only": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+name+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := Command("tool")
	cmd.Env = []string{"PATH=/first", "PATH=" + dir + "/a:" + dir + "/none:" + dir + "/b"}
	if res, out := run(t, cmd); res.ExitCode != 0 || out != "b/tool\n" {
		t.Errorf("got %+v and %q", res, out)
	}
	cmd = Command("only")
	cmd.Env = []string{"PATH=" + dir + "/a:" + dir + "/b"}
	_, err := cmd.Run(t.Context())
	startError(t, "only", err, CodeCannotExec, unix.EACCES)
}

func TestWhatTheCallerGotWrongIsAnErrorOfTheCallers(t *testing.T) {
	t.Parallel()
	cmd := sh("exit 0")
	cmd.Dir = "/no/such/directory"
	_, err := cmd.Run(t.Context())
	startError(t, "directory", err, CodeFailed, unix.ENOENT)
	for _, cmd := range []*Cmd{{}, {Spec: Spec{Args: []string{""}}}} {
		var failed *StartError
		if err := cmd.Start(t.Context()); !errors.As(err, &failed) || failed.ExitCode != CodeFailed {
			t.Errorf("without a name: %v", err)
		}
	}
	if _, err := sh("").Wait(); err == nil {
		t.Error("Wait before Start: no error")
	}
	for _, err := range []error{sh("").Stop(), sh("").Kill(), sh("").Signal(unix.SIGTERM)} {
		if err == nil {
			t.Error("a signal before Start: no error")
		}
	}
	cmd = sh("exit 0")
	if start(t, cmd); cmd.Start(t.Context()) == nil {
		t.Error("started twice")
	}
	wait(t, cmd)
	for _, err := range []error{cmd.Stop(), cmd.Kill(), cmd.Signal(unix.SIGTERM)} {
		if !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a signal after Wait: %v", err)
		}
	}
}

func TestWhatIsNoSignalIsNotSent(t *testing.T) {
	t.Parallel()
	cmd := sh("echo ready; exec sleep 7071")
	c := open(t, cmd)
	c.line()
	for _, sig := range []unix.Signal{-1, 0, 65, 0x80, 0x81, 256 + 9} {
		if err := cmd.Signal(sig); err == nil {
			t.Errorf("%d: no error", int(sig))
		}
	}
	if err := cmd.Signal(unix.SIGUSR1); err != nil {
		t.Error(err)
	}
	if res := wait(t, cmd); res.Signal != unix.SIGUSR1 {
		t.Errorf("something else than SIGUSR1 got through: %+v", res)
	}
}

func TestAContextThatHasEndedStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "started")
	if res, err := sh(`touch "$1"`, file).Run(ctx); !errors.Is(err, context.Canceled) || res != nil {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("started all the same")
	}
}

func TestAContextThatEndsAfterTheCommandIsNotItsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := sh("echo ready")
	cmd.Stdout = w
	if err := cmd.Start(ctx); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	awaitEnd(t, cmd.keeper) // its report is in the socket, the run is over
	cancel()
	if res, err := waitErr(t, cmd); err != nil || res.Reason != Completed {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestADeadlineIsACodeAndNoError(t *testing.T) {
	t.Parallel()
	cmd := sh("echo ready; exec sleep 7071")
	cmd.Timeout = 200 * time.Millisecond
	res, out := run(t, cmd)
	if res.ExitCode != CodeDeadline || res.Reason != DeadlineExceeded || res.Signal != unix.SIGKILL || out != "ready\n" {
		t.Errorf("got %+v and %q", res, out)
	}
	if res.Duration < cmd.Timeout || res.Killed != 1 || res.Escaped != 0 {
		t.Errorf("got %+v", res)
	}
}

func TestTheUserTheDirectoryAndTheUmaskAreTheCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mask := 0o027
	cmd := sh("umask; pwd")
	cmd.Umask, cmd.Dir = &mask, dir
	if _, out := run(t, cmd); out != "0027\n"+dir+"\n" {
		t.Errorf("got %q", out)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if _, out := run(t, sh("pwd")); out != here+"\n" {
		t.Errorf("not the caller's directory: %q", out)
	}
	nstest.NeedRoot(t)
	cmd = sh("id -u; id -g; id -G; umask")
	cmd.Credential = &Credential{UID: 4711, GID: 4712, Groups: []uint32{4713, 4714}}
	own := unix.Umask(0)
	unix.Umask(own)
	if _, out := run(t, cmd); out != fmt.Sprintf("4711\n4712\n4712 4713 4714\n%04o\n", own) {
		t.Errorf("got %q", out)
	}
}
