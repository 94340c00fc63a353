package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

// bound is how long foster may try to end what it cannot, and room for a slow machine.
const bound = 5*time.Second + soon

// shared is a directory that other users may enter; the test's own are closed to them.
func shared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// setuid is a copy of the helper that its user becomes root with.
func setuid(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(nstest.Helper(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(shared(t), "intruder")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestS11_ASetuidProgramOutOfReachIsReported(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.UID = 1000
		o, _ := w.RunPast(t, time.Second, "-g", "200ms", "--", setuid(t), "intrude")
		outOfReach(t, o.Prints("ready 0"), 1)
	})
}

func TestS11_WithoutCAPKILLAnotherUsersCommandIsReported(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.DropCaps = []int{unix.CAP_KILL}
		o, _ := w.RunPast(t, time.Second, "-g", "200ms", "--user", "1000:1000", "--", "sh", "-c", "sleep 7071 & echo ready; sleep 7072")
		outOfReach(t, o, 2)
	})
}

// outOfReach wants a run to have ended at its bound, with a warning, and as many survivors.
func outOfReach(t *testing.T, o *nstest.Outcome, survivors int) {
	t.Helper()
	o.Exits(124).After(5 * time.Second).Before(bound).Warns("not permitted")
	if got := o.Report().Survivors; len(got) < survivors {
		t.Errorf("survivors %v, want %d\n%s", got, survivors, o)
	}
}

func TestS11_ASIGTERMThatCannotBeHandedOnIsNoEnd(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.DropCaps = []int{unix.CAP_KILL}
		end := filepath.Join(shared(t), "end")
		r := w.Start(t, "-g", "60", "--user", "1000:1000", "--", "sh", "-c",
			`echo ready; until [ -e "$1" ]; do sleep 0.05; done; exit 7`, "sh", end).Expect("ready")
		r.Signal(unix.SIGTERM).ExpectError("not permitted")
		if err := os.WriteFile(end, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		r.Wait().Exits(7).Clean()
	})
}

func TestX11_WithoutASubreaperFosterSaysSoAndDoesWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := nstest.Subreaper()
	w.Setup.NoSubreaper = true
	w.Run(t, "--", "sh", "-c", "echo out; exit 7").Exits(7).Prints("out").Warns("subreaper", "not permitted")
	r := w.Start(t, "-t", "300ms", "-g", "0", "--", "sh", "-c", "sleep 7071 & sleep 9")
	r.Wait().Exits(124).Before(soon)
	// It is not foster that the kernel tells when the orphan has ended, so that may be a little later.
	r.Until("the orphan dead", func(all []wire.Process) bool { return !running("sleep 7071")(all) })
	r = w.Start(t, "--", "sh", "-c", "echo ready; exec sleep inf").Expect("ready")
	r.Signal(unix.SIGTERM).Wait().Exits(143).Before(soon).Clean()
}

// What a trapped call returns is no error, and its SIGSYS is not for the command.
func TestX11_ASubreaperThatATrapRefusesIsMissedToo(t *testing.T) {
	t.Parallel()
	w := nstest.Subreaper()
	w.Setup.TrapSubreaper = true
	w.Run(t, "--", "sh", "-c", "echo out; exit 7").Exits(7).Prints("out").Warns("subreaper")
}

// Killing the parent makes the zombie foster's own.
func TestX14_AZombieOfAParentThatDoesNotWaitIsReapedWithIt(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o, d := w.RunPast(t, deadline, "-g", "0", "--", w.Helper(t), "neglect")
		o.Exits(124).Before(d + soon).Clean()
	})
}

// A parent that foster cannot kill keeps its zombie, and foster says whose it is.
func TestX14_AZombieWhoseParentLivesOnIsReportedWithTheParent(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.DropCaps = []int{unix.CAP_KILL}
		o, d := w.RunPast(t, deadline, "-g", "0", "--user", "1000:1000", "--", w.Helper(t), "neglect")
		o.Exits(124).Before(d+bound).Warns("zombie", "neglectful")
		for _, s := range o.Report().Survivors {
			if s.State == "Z" && strings.Contains(s.Reason, "neglectful") {
				return
			}
		}
		t.Errorf("no zombie among the survivors\n%s", o)
	})
}
