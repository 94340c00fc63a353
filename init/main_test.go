package supervisor

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const aloneVar = "SUPERVISOR_TEST_ALONE"

func TestMain(m *testing.M) {
	for _, entry := range os.Environ() { // a developer's own settings are not part of the test
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, Prefix) {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}

// alone runs the calling test in a process of its own, which a run takes over, and reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVar) == t.Name() {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), aloneVar+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// load is Load where nothing is to be wrong.
func load(t *testing.T, args, environ []string) *Plan {
	t.Helper()
	plan, err := Load(args, environ)
	if err != nil {
		t.Fatalf("%q, %q: %v", args, environ, err)
	}
	return plan
}

// problems are those that Load finds.
func problems(t *testing.T, args, environ []string) Problems {
	t.Helper()
	_, err := Load(args, environ)
	list, ok := IsProblem(err)
	if !ok {
		t.Fatalf("%q, %q: %v", args, environ, err)
	}
	return list
}

// one is the only problem that Load finds.
func one(t *testing.T, args, environ []string) Problem {
	t.Helper()
	list := problems(t, args, environ)
	if len(list) != 1 {
		t.Fatalf("%q, %q: %v", args, environ, list)
	}
	return list[0]
}

// inherited is a descriptor as a parent passes it: not close-on-exec.
func inherited(t *testing.T) int {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}
