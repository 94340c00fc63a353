package proc

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestChildrenOfEveryThreadAreFound(t *testing.T) {
	const threads = 8
	p := play(t, nil, "threads", strconv.Itoa(threads))
	r := reader(t)
	if r.scan {
		nstest.Skip(t, "this kernel has no children files")
	}
	got, err := r.Children(p.pid, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := pids(t, p)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s, ok := r.Stat(p.pid)
	if !ok || s.Threads <= threads {
		t.Errorf("got %+v: fewer threads than there are", s)
	}
	// What the caller has already stays in front.
	if got, err := r.Children(p.pid, s.Threads, []int{42}); err != nil || len(got) != threads+1 || got[0] != 42 {
		t.Errorf("appended to 42: %v, %v", got, err)
	}
}

func TestTheScanFindsTheSameChildrenAsTheFiles(t *testing.T) {
	p := play(t, nil, "threads", "5")
	r := reader(t)
	r.scan = true
	for range 2 { // nothing is left of the first walk
		r.Refresh()
		for _, parent := range []int{p.pid, os.Getpid(), pids(t, p)[0]} {
			got, err := r.Children(parent, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := reader(t).Children(parent, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("of %d: the scan found %v, the files list %v", parent, got, want)
			}
		}
	}
}

func pids(t *testing.T, p program) (list []int) {
	t.Helper()
	for _, line := range p.lines {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	slices.Sort(list)
	return list
}

func TestARealNameShiftsNoField(t *testing.T) {
	for _, name := range []string{") R 1 1 1 (", "a\nb) Z 9\n", "((( )"} {
		p := play(t, nil, "named", name)
		r := reader(t)
		s, ok := r.Stat(p.pid)
		if !ok || s.Pid != p.pid || s.Parent != os.Getpid() || s.Dead() || s.Group != unix.Getpgrp() {
			t.Errorf("%q: got %+v, %v", name, s, ok)
		}
		if got := r.Name(p.pid); got != name {
			t.Errorf("name is %q, want %q", got, name)
		}
	}
}

func TestAProcessWhoseMainThreadHasEndedIsAZombieButNotDead(t *testing.T) {
	p := play(t, nil, "headless", "")
	s, ok := reader(t).Stat(p.pid)
	for ok && s.State != 'Z' { // its main thread is about to end
		s, ok = reader(t).Stat(p.pid)
	}
	if !ok || s.Dead() || s.Threads < 2 {
		t.Errorf("got %+v, %v", s, ok)
	}
}

func TestTheProcOfAnotherNamespaceIsForeign(t *testing.T) {
	nstest.NeedRoot(t)
	for mount, want := range map[string]string{"outer": ErrForeign.Error(), "own": "<nil>"} {
		attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
		if p := play(t, attr, "namespace", mount); len(p.lines) != 1 || p.lines[0] != want {
			t.Errorf("%s /proc: Open says %q, want %q", mount, p.lines, want)
		}
	}
}

func TestTheLimitOnLocksIsTheHardOneAndUnlimitedIs0(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &limit); err != nil {
		t.Fatal(err)
	}
	want := limit.Max
	if want == unix.RLIM_INFINITY {
		want = 0
	}
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if got := r.LockLimit(os.Getpid()); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	lower := unix.Rlimit{Cur: 5, Max: 7}
	child := exec.Command("sleep", "7071")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := unix.Prlimit(child.Process.Pid, unix.RLIMIT_LOCKS, &lower, nil); err != nil {
		t.Fatal(err)
	}
	if got := r.LockLimit(child.Process.Pid); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

func TestTheTracerIsNamed(t *testing.T) {
	p := play(t, nil, "wait", "")
	runtime.LockOSThread() // ptrace belongs to a thread
	defer runtime.UnlockOSThread()
	const seize = 0x4206
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, seize, uintptr(p.pid), 0, 0, 0, 0); errno != 0 {
		nstest.Skip(t, "no ptrace: "+errno.Error())
	}
	if got := reader(t).Tracer(p.pid); got != unix.Gettid() {
		t.Errorf("got %d, want %d", got, unix.Gettid())
	}
}

func TestOpeningKeepsNoDescriptor(t *testing.T) {
	before := descriptors(t)
	r := reader(t)
	r.Refresh()
	if _, err := r.Children(os.Getpid(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if after := descriptors(t); !slices.Equal(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
}

func descriptors(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestReadFileReadsMoreThanItsFirstBuffer(t *testing.T) {
	name := t.TempDir() + "/file"
	want := make([]byte, 10000)
	for i := range want {
		want[i] = byte(i % 251)
	}
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(name); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if _, err := ReadFile(name + "-not"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestChildrenOfAProcessThatIsGoneAreNone(t *testing.T) {
	if got, err := reader(t).Children(1<<23, 1, nil); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
