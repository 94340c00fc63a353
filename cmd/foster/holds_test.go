package main

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// Where foster must hold: surroundings in which it is not told of processes, or cannot speak.

func TestAnotherUsersProcMayBeHidden(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.HidePid, w.Setup.UID = true, 1000
		for name, row := range map[string]func(*testing.T, nstest.World){"T03": t03, "T04": t04, "T05": t05, "S09": s09} {
			t.Run(name, func(t *testing.T) { row(t, w) })
		}
	})
}

func TestAnyOfTheThreeMayBeClosed(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"} {
			argv := []string{w.Foster(t), "-t", "300ms", "-g", "0", "--", "sh", "-c", "sleep 7071 & setsid sleep 7071 & sleep 9"}
			w := w
			w.Program = []string{"/bin/sh", "-c", `exec "$@" ` + closed, "sh"}
			o := w.Run(t, argv...).Exits(124).Before(soon)
			for _, p := range o.Left {
				t.Errorf("%s: left behind: %v", closed, p)
			}
		}
	})
}

// Nothing says then what is below a child until the child has ended; whom nothing is known of has not had the stop signal.
func TestWithoutProcTheTreeGetsTheStopSignalAndIsGone(t *testing.T) {
	t.Parallel()
	nstest.NeedRoot(t)
	w := nstest.Subreaper()
	w.Setup.NoProc, w.Setup.PidMax = true, 20_000 // every pid is asked for
	script := `(setsid sh -c "sleep 7071 & sleep 7071" &); setsid sh -c 'trap "echo told; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`
	r := w.Start(t, "--signal-target", "tree", "-g", "300", "--", "sh", "-c", script).Expect("ready")
	r.Signal(unix.SIGTERM).Wait().Prints("told").Clean()
}

// Signals that come all the time do not make the wait for a reader of stderr any longer.
func TestADeadlineComesThoughNobodyReadsStderrAndOrphansRain(t *testing.T) {
	t.Parallel()
	read, write := pipe(t)
	fill(t, write)
	script := `while :; do (setsid sleep 0.02 &); sleep 0.02; done`
	cmd := exec.Command(nstest.Foster(t), "-t", "0.5", "-g", "0", "--log-level", "debug", "--", "sh", "-c", script)
	cmd.Stderr = write
	began := time.Now()
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 124 {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(began); took > nstest.Slow(soon) {
		t.Errorf("took %v", took)
	}
	_ = read
}
