package nstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

type kind int

const (
	subreaper kind = iota // below the namespace's init
	pid1                  // the namespace's init
	docker                // a container's init
)

// World is where and how foster runs. A test may change its copy before it starts something.
type World struct {
	Name    string
	Setup   wire.Setup // surroundings; not for containers
	Docker  []string   // options of docker run; only for containers
	Named   string     // the container's name, if the test has to know it: see Name
	Program []string   // runs in place of foster, if set
	Env     []string   // beside PATH
	Stdout  *os.File   // in place of a pipe that the test reads
	Stderr  *os.File
	NoInit  bool // of a container: foster is not its PID 1, so nothing is said about its exit
	kind    kind
	report  string // the file that foster's report goes to; "" = stderr
}

// Subreaper runs foster as an ordinary process in a PID namespace, so that whatever it leaves behind can be listed.
func Subreaper() World {
	return World{Name: "subreaper", kind: subreaper, Setup: wire.Setup{Fork: true}}
}

// PID1 runs foster as the init of a PID namespace with a /proc of its own.
func PID1() World { return World{Name: "pid1", kind: pid1} }

// Docker runs foster in a container of an image that holds foster, the helper and busybox.
func Docker() World { return World{Name: "docker", kind: docker} }

// IsInit says whether foster is PID 1 in this world.
func (w World) IsInit() bool { return w.kind == pid1 || w.kind == docker && !w.NoInit }

// IsContainer says whether foster has an image for its root, with busybox as the only shell.
func (w World) IsContainer() bool { return w.kind == docker }

// Foster is foster's path in this world.
func (w World) Foster(t testing.TB) string {
	if w.kind == docker {
		return "/foster"
	}
	return Foster(t)
}

// Helper is the helper's path in this world.
func (w World) Helper(t testing.TB) string {
	if w.kind == docker {
		return "/helper"
	}
	return Helper(t)
}

// Start starts foster with these arguments. It is gone when the test ends.
func (w World) Start(t testing.TB, args ...string) *Run {
	t.Helper()
	argv := append(append([]string{}, w.Program...), args...)
	if w.Program == nil {
		argv = append([]string{w.Foster(t), "--report", w.reportTo(t)}, args...)
	}
	if w.kind == docker {
		return w.startContainer(t, argv)
	}
	return w.startNamespace(t, argv)
}

// Run starts foster and waits for its end.
func (w World) Run(t testing.TB, args ...string) *Outcome {
	t.Helper()
	return w.Start(t, args...).Wait()
}

// RunPast runs foster with a deadline before which the command prints "ready". A run in which it came too late, since
// the machine had other things to do, says nothing of the row: the next has twice the time. It returns the deadline.
func (w World) RunPast(t testing.TB, deadline time.Duration, args ...string) (*Outcome, time.Duration) {
	t.Helper()
	for {
		o := w.Run(t, append([]string{"-t", deadline.String()}, args...)...)
		if strings.Contains(o.Stdout, "ready") {
			return o, deadline
		}
		if deadline *= 2; deadline > time.Minute {
			t.Fatalf("never ready\n%s", o)
		}
	}
}

// reportTo is a file where foster can write one. It remembers which, so w must be the copy that Start works with.
func (w *World) reportTo(t testing.TB) string {
	if w.kind == docker || w.Setup.UID != 0 {
		return "fd:2"
	}
	w.report = filepath.Join(t.TempDir(), "report")
	return w.report
}
