// Package nstest runs foster where it has to hold: as an ordinary process below another init, as PID 1 of a PID
// namespace, and in a container. Real processes only.
//
// It is test code that several packages share; nothing of foster imports it. What it makes (processes, mounts, cgroups,
// containers, the image) is gone when a test ends, however it ends: processes and mounts with their namespace, whose
// init the kernel kills when the test binary dies, the rest by cleanups.
package nstest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const module = "github.com/fosterinit/foster"

// built is where Main puts the binaries of this test run. It is set before the first test and not changed after.
var built string

// Main runs the tests and returns their exit code. What they share is cleared away by a janitor.
func Main(m *testing.M) int {
	if duty := os.Getenv(janitorsDuty); duty != "" {
		return clearAway(duty)
	}
	for _, e := range os.Environ() { // a developer's own settings are not part of the test
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "FOSTER_") {
			_ = os.Unsetenv(name)
		}
	}
	if signal.Ignored(unix.SIGHUP) { // by nohup; what is caught is not what children inherit
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
	// Most rows wait more than they compute, so more of them than CPUs may run at once.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
	built = filepath.Join(os.TempDir(), prefix+unique)
	done, err := startJanitor(built)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer done()
	return m.Run()
}

// Foster is the binary under test, built with the race detector when the tests are.
func Foster(t testing.TB) string { return binary(t, "foster", "cmd/foster", Race) }

// StaticFoster is the binary as it is released. It runs in an image without a C library.
func StaticFoster(t testing.TB) string { return binary(t, "foster-static", "cmd/foster", false) }

// Helper is the static program that plays all the others; see its roles in helper/main.go.
func Helper(t testing.TB) string { return binary(t, "helper", "internal/nstest/helper", false) }

var (
	builds    = map[string]error{}
	buildLock sync.Mutex
)

func binary(t testing.TB, name, pkg string, race bool) string {
	t.Helper()
	path := filepath.Join(built, name)
	buildLock.Lock()
	defer buildLock.Unlock()
	err, done := builds[name]
	if !done {
		err = build(path, pkg, race)
		builds[name] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(path, pkg string, race bool) error {
	args, cgo := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", path}, "CGO_ENABLED=0"
	if race {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	cmd := exec.Command("go", append(args, module+"/"+pkg)...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Skip skips a test that this machine cannot run. In CI, where everything it needs is promised, that is a failure.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal("must not be skipped in CI: " + reason)
	}
	t.Skip(reason)
}

// NeedRoot skips a test that has to change users, cgroups or mounts of the machine.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
}

// NeedKernel skips a test below a kernel version.
func NeedKernel(t testing.TB, major, minor int, what string) {
	t.Helper()
	var (
		uts  unix.Utsname
		a, b int
	)
	if err := unix.Uname(&uts); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &a, &b); err != nil {
		t.Fatal(err)
	}
	if a < major || a == major && b < minor {
		Skip(t, fmt.Sprintf("%s needs Linux %d.%d", what, major, minor))
	}
}

// NeedProgram skips a test that needs a program of the machine, and returns its path.
func NeedProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(t, "needs "+name)
	}
	return path
}

// Slow widens a bound where the race detector makes everything slower.
func Slow(d time.Duration) time.Duration {
	if Race {
		return 4 * d
	}
	return d
}

// Rounds is how often a test repeats something: n times, and a twentieth of that with the race detector, which looks at
// every access and not for the rare moment, and makes each start of foster ten times as long.
func Rounds(n int) int {
	if Race {
		return n / 20
	}
	return n
}
