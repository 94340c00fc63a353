package nstest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// janitorsDuty names the directory to remove, to the test binary that is started as a janitor.
const janitorsDuty = "NSTEST_JANITOR"

const (
	prefix     = "foster-e2e-" // of everything that has a name
	repository = "foster-e2e"
)

// unique tells one test run's things from another's. A janitor is told its tests'.
var unique = func() string {
	if duty := os.Getenv(janitorsDuty); duty != "" {
		return filepath.Base(duty)[len(prefix):]
	}
	return fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
}()

// imported is a file in that directory that says that there may be an image, and containers.
const imported = "imported"

// startJanitor starts the test binary once more, in a session of its own: it clears away when its stdin ends, so also
// when the tests were killed by go test's timeout or by Ctrl-C. done waits for that.
func startJanitor(dir string) (done func(), err error) {
	if err := os.Mkdir(dir, 0o755); err != nil { // commands under test run as other users too
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), janitorsDuty+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = in.Close(); _ = cmd.Wait() }, nil
}

// clearAway is what a janitor does.
func clearAway(dir string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if _, err := os.Stat(filepath.Join(dir, imported)); err == nil {
		out, _ := exec.Command("docker", "ps", "-aq", "--filter", "name="+prefix+unique+"-").Output()
		if ids := strings.Fields(string(out)); len(ids) > 0 {
			_ = exec.Command("docker", append([]string{"rm", "-f"}, ids...)...).Run()
		}
		_ = exec.Command("docker", "rmi", "-f", repository+":"+unique).Run()
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, _ := filepath.Glob(pattern + prefix + unique + "-*")
		for _, group := range groups {
			_ = removeCgroup(group)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return 1
	}
	return 0
}
