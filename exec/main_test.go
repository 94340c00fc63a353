package exec

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bound is for what should take milliseconds; a busy machine takes longer.
const bound = 30 * time.Second

// The commands of these tests are shell scripts. Where the test is about the program that calls the library, the test
// binary plays that, in one of these roles.
var roles = map[string]func(script string){
	"call":            playCaller,
	"ignoring-chld":   func(script string) { signal.Ignore(unix.SIGCHLD); playCaller(script) },
	"with-descriptor": func(script string) { leakDescriptor(); playCaller(script) },
	"as-nobody":       playNobody,
}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// playCaller is a program that runs one script and prints how it ended.
func playCaller(script string) {
	cmd := sh(script)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	res, err := cmd.Run(context.Background())
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(res.Reason, res.ExitCode)
}

// playNobody tries to become root without the right to.
func playNobody(script string) {
	cmd := sh(script)
	cmd.Credential = &Credential{UID: 0, GID: 0}
	_, err := cmd.Run(context.Background())
	failed, ok := err.(*StartError)
	fmt.Println(ok && failed.ExitCode == CodeFailed && failed.Hint != "", err)
}

// leakDescriptor leaves a descriptor for whatever this process executes.
func leakDescriptor() {
	if err := unix.Dup3(2, 77, 0); err != nil {
		panic(err)
	}
}

// caller is the test binary in a role.
func caller(t *testing.T, role, script string) *osexec.Cmd {
	t.Helper()
	cmd := osexec.Command("/proc/self/exe", role, script)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return cmd
}

// says is what the test binary prints in a role.
func says(t *testing.T, role, script string) string {
	t.Helper()
	out, err := caller(t, role, script).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// sh is a command that runs a script. It ends at once where the test ends it.
func sh(script string, args ...string) *Cmd {
	cmd := Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.GracePeriod = 0
	return cmd
}

// run runs the command to its end, which must come in time, and returns its output.
func run(t *testing.T, cmd *Cmd) (*Result, string) {
	t.Helper()
	var out Buffer
	out.Max = 1 << 20
	cmd.Stdout, cmd.Stderr = &out, &out
	start(t, cmd)
	return wait(t, cmd), string(out.Bytes())
}

func start(t *testing.T, cmd *Cmd) {
	t.Helper()
	if err := cmd.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wait waits for a command that is to end without an error.
func wait(t *testing.T, cmd *Cmd) *Result {
	t.Helper()
	res, err := waitErr(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// waitErr is cmd.Wait with a bound.
func waitErr(t *testing.T, cmd *Cmd) (res *Result, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends with the command
		defer close(done)
		res, err = cmd.Wait()
	}()
	select {
	case <-done:
	case <-time.After(bound):
		t.Error("Wait did not come back")
		_ = unix.Kill(cmd.keeper, unix.SIGCONT)
		_ = cmd.Kill() // so that nothing is left behind
		<-done
		t.FailNow()
	}
	return res, err
}

// console is a running command whose output is read line by line.
type console struct {
	t   *testing.T
	cmd *Cmd
	in  *bufio.Reader
	out *os.File
}

// open starts the command.
func open(t *testing.T, cmd *Cmd) *console {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	start(t, cmd)
	_ = w.Close()
	t.Cleanup(func() { _ = r.Close() })
	return &console{t, cmd, bufio.NewReader(r), r}
}

// line returns the next line that the command prints.
func (c *console) line() string {
	c.t.Helper()
	_ = c.out.SetReadDeadline(time.Now().Add(bound))
	text, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSpace(text)
}

// number returns the next line, a number.
func (c *console) number() int {
	c.t.Helper()
	n, err := strconv.Atoi(c.line())
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// rest returns all that is still to be read.
func (c *console) rest() string {
	c.t.Helper()
	_ = c.out.SetReadDeadline(time.Now().Add(bound))
	text, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Errorf("after %q: %v", text, err)
	}
	return string(bytes.TrimSpace(text))
}

// gone fails unless no process has the pid.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
}

// awaitEnd waits until the process has ended, whoever reaps it.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	end := time.Now().Add(bound)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end).Milliseconds()))
		if n > 0 {
			return
		}
		if err != unix.EINTR {
			t.Fatalf("process %d has not ended: %v", pid, err)
		}
	}
}
