package nstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// startNamespace runs argv in new PID and mount namespaces, and in a user namespace where that takes one.
func (w World) startNamespace(t testing.TB, argv []string) *Run {
	t.Helper()
	setup, err := json.Marshal(w.Setup)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(Helper(t), append([]string{"ns", string(setup)}, argv...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.Env...)
	cmd.Dir = "/"
	cmd.SysProcAttr = namespaces()
	r := &Run{t: t, world: w, program: argv[0]}
	r.stdout, cmd.Stdout = w.pipe(t, w.Stdout)
	r.stderr, cmd.Stderr = w.pipe(t, w.Stderr)
	control := r.controlled(cmd)
	r.began = time.Now()
	err = cmd.Start()
	for _, f := range append(cmd.ExtraFiles, cmd.Stdout.(*os.File), cmd.Stderr.(*os.File)) {
		if f != w.Stdout && f != w.Stderr {
			_ = f.Close()
		}
	}
	if err != nil {
		Skip(t, fmt.Sprintf("no namespaces: %v", err))
	}
	r.top = cmd.Process.Pid
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }() // ends with the namespace
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
		r.letGo()
	})
	if control != nil {
		r.ended = reported(control, exited, cmd)
		r.letGo = func() { _ = control.Close() }
		return r
	}
	r.letGo = func() {}
	r.ended = exitedAs(cmd, exited, r.began)
	return r
}

func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  unix.SIGKILL, // the test binary may be killed by go test's timeout
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// controlled gives a namespace's init the socket on which it reports and waits. PID 1 foster must not inherit it.
func (r *Run) controlled(cmd *exec.Cmd) *os.File {
	if !r.world.Setup.Fork {
		return nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(pair[1]), "control")}
	return os.NewFile(uintptr(pair[0]), "control")
}

// reported is the end as the namespace's init tells it, which goes on living until the test lets go.
func reported(control *os.File, exited chan struct{}, cmd *exec.Cmd) <-chan wire.Ended {
	ended := make(chan wire.Ended, 1)
	go func() { // ends with the namespace, or when control is closed
		var e wire.Ended
		if err := json.NewDecoder(control).Decode(&e); err != nil {
			<-exited
			e.Err = fmt.Sprintf("the namespace's init ended: %v", cmd.ProcessState)
		}
		ended <- e
	}()
	return ended
}

// exitedAs is the end of PID 1, and so of the namespace, as its parent sees it.
func exitedAs(cmd *exec.Cmd, exited chan struct{}, began time.Time) <-chan wire.Ended {
	ended := make(chan wire.Ended, 1)
	go func() { // ends with the namespace
		<-exited
		e := wire.Ended{Code: cmd.ProcessState.ExitCode(), Elapsed: time.Since(began)}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			e.Signal = int(status.Signal())
		}
		ended <- e
	}()
	return ended
}

// pipe is what the command writes to and the stream that reads it; a file that the test brings is not read.
func (w World) pipe(t testing.TB, given *os.File) (*stream, *os.File) {
	t.Helper()
	if given != nil {
		return pump(strings.NewReader("")), given
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	return pump(read), write
}
