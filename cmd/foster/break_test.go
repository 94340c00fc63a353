package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// Found by one who was told to break it: each under the symptom it pins.

// A stop that only a tracer sees is no end.
func TestACommandThatHasItselfTracedHasNotEnded(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		o, d := w.RunPast(t, deadline, "-g", "100ms", "--", w.Helper(t), "traceme")
		o.Exits(124).After(d).Before(d + soon).Clean().Ends("DeadlineExceeded")
	})
}

func TestAMainProcessThatLeavesItsGroupGetsTheStopSignalAllTheSame(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, target := range []string{"process", "group", "tree"} {
			r := w.Start(t, "-g", "60", "--signal-target", target, "--", w.Helper(t), "move-group").Expect("ready")
			r.Signal(unix.SIGTERM).Wait().Exits(0).Prints("told").Before(soon).Clean()
		}
	})
}

func TestTheSignalsThatTheCLibraryKeepsAreForwardedToo(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, sig := range []unix.Signal{32, 33} {
			r := w.Start(t, "--", "sleep", "7071").Until("sleep", running("sleep 7071"))
			r.Signal(sig).Wait().Exits(128 + int(sig)).Clean()
		}
	})
}

// The write is foster's own, and so is its failure.
func TestALogThatMayNotGrowIsNotTheCommandsTrouble(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	script := `ulimit -f 0; exec "$1" --log-level debug -- sh -c 'exit 7' 2>"$2"`
	err := exec.Command("sh", "-c", script, "sh", nstest.Foster(t), log).Run()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 7 {
		t.Errorf("got %v", err)
	}
}

func TestAFailedStartIsNoSuccessWhateverTheSuccessCodes(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Run(t, "--success-exit-codes", "125,126,127", "--", "/nope").Exits(127).Ends("StartError")
	})
}

func TestTheSearchInPATHGoesOnWhereTheUserMayNotExecute(t *testing.T) {
	t.Parallel()
	nstest.NeedRoot(t)
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"root": 0o700, "all": 0o755} {
		bin := filepath.Join(dir, name)
		if err := os.Mkdir(bin, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "which"), []byte("#!/bin/sh\necho "+name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(nstest.Foster(t), "--user", "1000:1000", "--", "which")
	cmd.Env = []string{"PATH=" + filepath.Join(dir, "root") + ":" + filepath.Join(dir, "all")}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "all\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

// A symbolic link that the command makes is not followed by root.
func TestAResultIsNotWrittenThroughALinkOfTheCommands(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"--report", "--termination-message"} {
		dir := t.TempDir()
		victim := filepath.Join(dir, "victim")
		if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		script := `ln -s victim "$1/link"; exit 1`
		out, _ := exec.Command(nstest.Foster(t), option, filepath.Join(dir, "link"), "--", "sh", "-c", script, "sh", dir).CombinedOutput()
		if text, _ := os.ReadFile(victim); string(text) != "precious" || !strings.Contains(string(out), "not written") {
			t.Errorf("%s: the victim is %q, said %q", option, text, out)
		}
	}
}

func TestFosterDoesNotSpinWhereTheCommandTakesItsDescriptors(t *testing.T) {
	t.Parallel()
	script := `prlimit --nofile=0 --pid $PPID; kill -CONT $PPID; exec sleep 2`
	cmd := exec.Command(nstest.Foster(t), "--", "sh", "-c", script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); used > time.Second {
		t.Errorf("%v of CPU time while the command slept", used)
	}
}

// Who ends on the stop signal hands its children on, and they have had none.
func TestChildrenOfLeftoversAreToldHoweverFastTheirParentEnds(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		script := `for i in $(seq 40); do (setsid sh -c "sleep 7071 & sleep 7071" &); done; until [ $(pgrep -fc "^sleep 7071") -ge 80 ]; do :; done; echo ready; exec sleep 7072`
		r := w.Start(t, "-g", "60", "--", "sh", "-c", script).Expect("ready").Until("sleep", running("sleep 7072"))
		r.Signal(unix.SIGTERM).Wait().Exits(143).Before(soon).Clean().Killed(0, 0)
	})
}
