package reaper

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A reaper owns every child of its process, so each test runs in a process of its own: the test binary again.
const (
	aloneVar = "REAPER_TEST_ALONE"
	patience = 30 * time.Second
)

// alone runs the calling test in a process of its own, a subreaper, and reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	return aloneIn(t, 0)
}

// aloneIn is alone in new namespaces.
func aloneIn(t *testing.T, namespaces uintptr) bool {
	t.Helper()
	if os.Getenv(aloneVar) == t.Name() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=120s")
	cmd.Env = append(os.Environ(), aloneVar+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Cloneflags: namespaces}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// children tells when one has changed state.
func children(t *testing.T) <-chan os.Signal {
	t.Helper()
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCHLD)
	t.Cleanup(func() { signal.Stop(c) })
	return c
}

// await waits with SIGCHLD until done.
func await(t *testing.T, what string, changed <-chan os.Signal, done func() bool) {
	t.Helper()
	late := time.After(patience)
	for !done() {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("never saw %s", what)
		}
	}
}

// start forks a raw child under the reaper.
func start(t *testing.T, r *Reaper, role, code int, c Child) int {
	t.Helper()
	pid, err := r.Start(func() (int, error) { return rawFork(unix.SIGCHLD, role, code) }, c)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// zombie waits until the child has ended, and leaves it to be reaped.
func zombie(t *testing.T, pid int) {
	t.Helper()
	if _, err := waitid(unix.P_PID, pid, unix.WEXITED|unix.WNOWAIT|unix.WALL); err != nil {
		t.Fatal(err)
	}
}

func drain(t *testing.T, r *Reaper) (empty bool) {
	t.Helper()
	empty, err := r.Drain(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return empty
}

func none(Exit) {}
