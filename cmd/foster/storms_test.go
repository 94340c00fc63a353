package main

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// limited is a world in which at most so many processes exist. foster is one of them and has to live with that.
func limited(t *testing.T, w nstest.World, most int) nstest.World {
	if w.IsContainer() {
		w.Docker = append(w.Docker, "--pids-limit", strconv.Itoa(most))
	} else {
		w.Setup.Cgroups = []string{nstest.PidsCgroup(t, most)}
	}
	return w
}

func TestT14_ACometIsCaught(t *testing.T) {
	alone(t, everywhere(), func(t *testing.T, w nstest.World) {
		calmed(t, limited(t, w, 200), time.Second, 2, "comet")
	})
}

func TestT14_AStormIsCalmed(t *testing.T) {
	alone(t, everywhere(), func(t *testing.T, w nstest.World) {
		calmed(t, limited(t, w, 320), 1500*time.Millisecond, 200, "storm", "300")
	})
}

// calmed wants every run to end clean, and the best of three to be in time: two CPUs are all a storm's, and the
// machine's other work comes on top.
func calmed(t *testing.T, w nstest.World, deadline time.Duration, killed int, role ...string) {
	best := time.Hour
	for range 3 {
		o, d := w.RunPast(t, deadline, append([]string{"-g", "0", "--", w.Helper(t)}, role...)...)
		o.Exits(124).Before(d+10*time.Second).Killed(killed, killed-1).Clean()
		if best = min(best, o.Elapsed-d); best < nstest.Slow(sweep(w)) {
			return
		}
	}
	t.Errorf("at best %v after the deadline", best)
}

// sweep is how long the end of a storm may take: PID 1 can freeze all of it in one call.
func sweep(w nstest.World) time.Duration {
	if w.IsInit() {
		return time.Second
	}
	return 5 * time.Second
}

func TestT16_ATracedProcessIsReportedNotWaitedForForEver(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		r := w.Start(t, "-g", "0", "--", "sh", "-c", "setsid sleep 7071 & echo ready; exec sleep 7072")
		r.Expect("ready").Until("sleep", running("sleep 7071"))
		release := traced(t, r.PidOf("sleep 7071"))
		began := time.Now()
		r.Signal(unix.SIGTERM).ExpectReport("survivors")
		if took := time.Since(began); took < 5*time.Second || took > nstest.Slow(bound) {
			t.Errorf("gave up after %v", took)
		}
		// The kernel lets PID 1 go only when nobody below it is left, so the tracer has to let go first.
		release()
		o := r.Wait().Exits(137).Warns("traced")
		survivors := o.Report().Survivors
		if len(survivors) != 1 || survivors[0].State != "Z" {
			t.Errorf("survivors %v, want the traced process", survivors)
		}
	})
}

// traced attaches a tracer that never waits, and returns what ends it.
func traced(t *testing.T, pid int) (release func()) {
	cmd := exec.Command(nstest.Helper(t), "trace", strconv.Itoa(pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	release = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(release)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("tracer: %q, %v", line, err)
	}
	return release
}

// The bystanders' children and the comet's generations share a hundred pids, so each is the other's again and again.
func TestT17_ARecycledPidIsNeverKilled(t *testing.T) {
	nstest.NeedRoot(t)
	nstest.NeedKernel(t, 6, 14, "pid_max of a namespace's own")
	w := limited(t, nstest.Subreaper(), 200)
	w.Setup.PidMax = 400
	w.Program = []string{w.Helper(t), "recur", "20", w.Foster(t)}
	o := w.Run(t, "-t", "150ms", "-g", "0", "--", w.Helper(t), "comet")
	if o.Exits(0); len(o.Left) != 0 {
		t.Errorf("left behind: %v", o.Left)
	}
}

func TestX01_ACommandThatTakesEveryProcessIsEnded(t *testing.T) {
	alone(t, everywhere(), func(t *testing.T, w nstest.World) {
		for _, grace := range []string{"0", "200ms"} {
			o, d := limited(t, w, 150).RunPast(t, time.Second, "-g", grace, "--", w.Helper(t), "fill")
			o.Exits(124).Before(d + soon).Clean().Ends("DeadlineExceeded")
		}
	})
}
