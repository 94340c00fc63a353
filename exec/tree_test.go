package exec

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// family is a main process, a member of its group and one in a session of its own that holds the output open too. It
// prints their pids; each prints its name when it gets SIGUSR1 and goes on.
const family = `
	exec 2>/dev/null # where a shell says what ended its sleep
	member='trap "echo $0" USR1; echo ready; while :; do sleep 7071 & wait $!; done'
	sh -c "$member" sibling & echo $!
	setsid sh -c "$member" hermit & echo $!
	echo $$
	trap "echo main" USR1; echo ready
	while :; do sleep 7071 & wait $!; done`

// meet reads the pids of a family and waits until all are ready.
func meet(c *console) (pids []int) {
	c.t.Helper()
	for ready := 0; ready < 3; {
		if line := c.line(); line == "ready" {
			ready++
		} else {
			pids = append(pids, atoi(c.t, line))
		}
	}
	return pids
}

func atoi(t *testing.T, text string) (n int) {
	t.Helper()
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			t.Fatalf("%q is no number", text)
		}
		n = 10*n + int(digit-'0')
	}
	return n
}

func TestADeadlineEndsThoseInOtherSessionsAndHoldersOfTheOutput(t *testing.T) {
	t.Parallel()
	cmd := sh("setsid sh -c 'echo $$; exec sleep 7071' & sleep 7071 & echo $!; echo before; exec sleep 7071")
	cmd.Timeout = 500 * time.Millisecond
	res, out := run(t, cmd)
	lines := strings.Fields(out)
	if len(lines) != 3 || !slices.Contains(lines, "before") {
		t.Fatalf("the output up to the deadline: %q", out)
	}
	gone(t, res.Pid)
	for _, line := range lines {
		if line != "before" {
			gone(t, atoi(t, line))
		}
	}
	if res.Reason != DeadlineExceeded || res.Killed != 3 || res.Escaped != 1 || len(res.Survivors) != 0 {
		t.Errorf("got %+v", res)
	}
}

func TestAContextThatEndsMidRunTakesTheTreeWithIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := sh("trap '' TERM; setsid sleep 7071 & echo $!; echo $$; while :; do sleep 7071; done")
	cmd.GracePeriod = time.Hour // a context gives none
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(ctx); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	text := make([]byte, 100)
	var got string
	for strings.Count(got, "\n") < 2 {
		n, err := r.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		got += string(text[:n])
	}
	cancel()
	res, err := waitErr(t, cmd)
	if !errors.Is(err, context.Canceled) || res == nil || res.Reason != Stopped || res.Signal != unix.SIGKILL {
		t.Errorf("got %+v, %v", res, err)
	}
	for _, pid := range strings.Fields(got) {
		gone(t, atoi(t, pid))
	}
}

func TestKillEndsATreeThatIgnoresEverything(t *testing.T) {
	t.Parallel()
	cmd := sh(family)
	cmd.GracePeriod = time.Hour
	c := open(t, cmd)
	pids := meet(c)
	if !slices.Contains(pids, cmd.Pid()) {
		t.Errorf("Pid is %d, the family is %v", cmd.Pid(), pids)
	}
	if err := cmd.Kill(); err != nil {
		t.Fatal(err)
	}
	res := wait(t, cmd)
	if res.Reason != Stopped || res.ExitCode != 137 || res.Escaped < 1 || res.Killed < 3 {
		t.Errorf("got %+v", res)
	}
	gone(t, pids...)
}

func TestTheSignalTargetSaysWhoGetsASignal(t *testing.T) {
	t.Parallel()
	for target, want := range map[SignalTarget][]string{
		TargetProcess: {"main"},
		TargetGroup:   {"main", "sibling"},
		TargetTree:    {"hermit", "main", "sibling"},
	} {
		t.Run(target.String(), func(t *testing.T) {
			t.Parallel()
			cmd := sh(family)
			cmd.SignalTarget = target
			c := open(t, cmd)
			pids := meet(c)
			if err := cmd.Signal(unix.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			var got []string
			for range want {
				got = append(got, c.line())
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%v got it, want %v", got, want)
			}
			if err := cmd.Stop(); err != nil { // GracePeriod is 0
				t.Fatal(err)
			}
			if more := c.rest(); more != "" {
				t.Errorf("%s got it too", more)
			}
			wait(t, cmd)
			gone(t, pids...)
		})
	}
}

func TestStopGivesTheCommandItsGracePeriod(t *testing.T) {
	t.Parallel()
	cmd := sh("trap 'echo bye; exit 5' USR2; sh -c 'echo ready; exec sleep 7071' & wait")
	cmd.GracePeriod, cmd.StopSignal = bound, unix.SIGUSR2
	c := open(t, cmd)
	c.line()
	for range 3 { // a second one changes nothing
		if err := cmd.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if last := c.line(); last != "bye" {
		t.Errorf("printed %q", last)
	}
	res := wait(t, cmd)
	if res.ExitCode != 5 || res.Reason != Stopped || res.Signal != 0 {
		t.Errorf("got %+v", res)
	}
}

func TestALeftoverThatCameAfterTheStopGetsTheStopSignalToo(t *testing.T) {
	t.Parallel()
	cmd := sh("trap 'trap - TERM; sleep 7071 & exit 5' TERM; echo ready; while :; do sleep 0.01; done")
	cmd.GracePeriod = time.Hour
	c := open(t, cmd)
	c.line()
	if err := cmd.Stop(); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, cmd); res.ExitCode != 5 || res.Reason != Stopped || res.Killed != 0 {
		t.Errorf("got %+v", res)
	}
}

func TestWhatIgnoresAStopIsKilledWhenTheGracePeriodIsOver(t *testing.T) {
	t.Parallel()
	cmd := sh("trap '' TERM; echo ready; while :; do sleep 7071; done")
	cmd.GracePeriod = 300 * time.Millisecond
	c := open(t, cmd)
	c.line()
	began := time.Now()
	if err := cmd.Stop(); err != nil {
		t.Fatal(err)
	}
	res := wait(t, cmd)
	if res.Reason != Stopped || res.Signal != unix.SIGKILL || time.Since(began) < cmd.GracePeriod {
		t.Errorf("after %v: %+v", time.Since(began), res)
	}
}

func TestAStopWithSIGKILLWaitsForNothing(t *testing.T) {
	t.Parallel()
	cmd := sh("setsid sleep 7071 & echo $!; exec sleep 7071")
	cmd.GracePeriod, cmd.StopSignal = time.Hour, unix.SIGKILL
	c := open(t, cmd)
	pid := c.number()
	if err := cmd.Stop(); err != nil {
		t.Fatal(err)
	}
	res := wait(t, cmd)
	if res.Reason != Stopped || res.Signal != unix.SIGKILL {
		t.Errorf("got %+v", res)
	}
	gone(t, pid)
}

func TestAStoppedProcessIsContinuedToEnd(t *testing.T) {
	t.Parallel()
	cmd := sh("trap 'exit 6' TERM; echo ready; kill -STOP $$; exit 1")
	cmd.GracePeriod, cmd.Timeout = bound, 300*time.Millisecond
	if res, _ := run(t, cmd); res.ExitCode != CodeDeadline || res.Signal != 0 {
		t.Errorf("got %+v", res)
	}
}
