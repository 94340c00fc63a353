package reaper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
)

func TestEndingIsCalledWhileTheChildIsAZombieAndEndedWhenItIsGone(t *testing.T) {
	if !alone(t) {
		return
	}
	r := New(none)
	var pid int
	var calls []string
	pid = start(t, r, exits, 7, Child{
		Ending: func() {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || !bytes.Contains(stat, []byte(") Z ")) {
				t.Errorf("no zombie while Ending runs: %q, %v", stat, err)
			}
			calls = append(calls, "ending")
		},
		Ended: func(e Exit) {
			if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("still there while Ended runs: %v", err)
			}
			if e.Pid != pid || e.Status.ExitStatus() != 7 {
				t.Errorf("got %+v", e)
			}
			calls = append(calls, "ended")
		},
	})
	zombie(t, pid)
	if empty := drain(t, r); !empty || !slices.Equal(calls, []string{"ending", "ended"}) {
		t.Errorf("empty %v, calls %v", empty, calls)
	}
}

func TestSignalReachesAChildUntilItIsReaped(t *testing.T) {
	if !alone(t) {
		return
	}
	var died unix.Signal
	r := New(none)
	pid := start(t, r, sleeps, 0, Child{Ended: func(e Exit) { died = e.Status.Signal() }})
	if err := unix.Setpgid(pid, pid); err != nil {
		t.Fatal(err)
	}
	if err := r.Signal(-pid, unix.SIGTERM); err != nil {
		t.Errorf("to the group: %v", err)
	}
	zombie(t, pid)
	if err := r.Signal(pid, unix.SIGKILL); err != nil {
		t.Errorf("to the zombie: %v", err)
	}
	drain(t, r)
	if died != unix.SIGTERM {
		t.Errorf("ended by %v", died)
	}
	for _, pid := range []int{pid, -pid, 0, 1, -1, os.Getpid(), os.Getppid()} {
		if err := r.Signal(pid, 0); !errors.Is(err, ErrNotChild) {
			t.Errorf("signal for %d: %v", pid, err)
		}
	}
}

func TestDrainSaysEmptyExactlyWhenThereIsNoChild(t *testing.T) {
	if !alone(t) {
		return
	}
	r := New(none)
	if !drain(t, r) {
		t.Error("not empty before the first child")
	}
	lasting := start(t, r, sleeps, 0, Child{})
	if drain(t, r) {
		t.Error("empty while a child lives")
	}
	short := start(t, r, exits, 0, Child{})
	zombie(t, short)
	if drain(t, r) {
		t.Error("empty after one of two")
	}
	if err := r.Signal(lasting, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	zombie(t, lasting)
	if !drain(t, r) {
		t.Error("not empty after the last one")
	}
}

func TestOneDrainReapsAllThatHaveEnded(t *testing.T) {
	if !alone(t) {
		return
	}
	const n = 50
	ended := 0
	r := New(func(Exit) { t.Error("an orphan that there is not") })
	for range n {
		zombie(t, start(t, r, exits, 0, Child{Ended: func(Exit) { ended++ }}))
	}
	if empty := drain(t, r); !empty || ended != n {
		t.Errorf("empty %v, %d of %d", empty, ended, n)
	}
}

func TestAChildWithAnotherExitSignalThanSIGCHLDIsReaped(t *testing.T) {
	if !alone(t) {
		return
	}
	var got []int
	r := New(func(e Exit) { got = append(got, e.Status.ExitStatus()) })
	for _, c := range []struct {
		exitSignal unix.Signal
		code       int
	}{{0, 3}, {unix.SIGWINCH, 4}} {
		pid, err := rawFork(c.exitSignal, exits, c.code) // an orphan from elsewhere, as it were
		if err != nil {
			t.Fatal(err)
		}
		zombie(t, pid)
	}
	if empty := drain(t, r); !empty || len(got) != 2 || got[0]+got[1] != 7 {
		t.Errorf("empty %v, codes %v", empty, got)
	}
}

func TestStoppedTellsOfEachStopOnceAndReapsNothing(t *testing.T) {
	if !alone(t) {
		return
	}
	// A SIGTSTP is thrown away for a group that nobody outside it could continue.
	if err := unix.Setpgid(0, 0); err != nil {
		t.Fatal(err)
	}
	changed := children(t)
	r := New(none)
	pid := start(t, r, sleeps, 0, Child{})
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGTSTP} {
		if err := r.Signal(pid, sig); err != nil {
			t.Fatal(err)
		}
		await(t, sig.String(), changed, func() bool { return r.Stopped(pid) == sig })
		if again := r.Stopped(pid); again != 0 {
			t.Errorf("told of %v again", again)
		}
		if err := r.Signal(pid, unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Signal(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	zombie(t, pid)
	if sig := r.Stopped(pid); sig != 0 {
		t.Errorf("the dead child was stopped by %v", sig)
	}
	zombie(t, pid) // it still is one
	if drain(t, r); r.Stopped(pid) != 0 || r.Stopped(os.Getppid()) != 0 {
		t.Error("a process that is no child was stopped")
	}
}

func TestAFailedForkRegistersNothing(t *testing.T) {
	r := New(none)
	pid, err := r.Start(func() (int, error) { return 42, unix.EAGAIN }, Child{})
	if pid != 0 || !errors.Is(err, unix.EAGAIN) || len(r.children) != 0 {
		t.Errorf("got %d, %v, children %v", pid, err, r.children)
	}
}

func TestAnExitIsInTheUnitsThatItsMethodsPromise(t *testing.T) {
	e := Exit{Rusage: unix.Rusage{Utime: unix.Timeval{Sec: 1, Usec: 5}, Stime: unix.Timeval{Usec: 7}, Maxrss: 3}}
	if e.UserTime() != time.Second+5*time.Microsecond || e.SystemTime() != 7*time.Microsecond || e.MaxRSS() != 3072 {
		t.Errorf("got %v, %v, %d", e.UserTime(), e.SystemTime(), e.MaxRSS())
	}
}

func TestWaitReapsOneChildAndNoOther(t *testing.T) {
	if !alone(t) {
		return
	}
	r := New(none)
	other := start(t, r, exits, 1, Child{})
	pid, err := rawFork(unix.SIGCHLD, exits, 9)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := Wait(pid); err != nil || e.Pid != pid || e.Status.ExitStatus() != 9 {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := Wait(pid); !errors.Is(err, unix.ECHILD) {
		t.Errorf("the second time: %v", err)
	}
	zombie(t, other)
}

// EachChild asks about four million pids, so once is enough.
func TestEachChildFindsWhatTheChildrenFilesList(t *testing.T) {
	if !alone(t) {
		return
	}
	r := New(none)
	var want []int
	for _, exitSignal := range []unix.Signal{unix.SIGCHLD, unix.SIGCHLD, 0} {
		pid, err := r.Start(func() (int, error) { return rawFork(exitSignal, sleeps, 0) }, Child{})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, pid)
	}
	dead := start(t, r, exits, 0, Child{})
	zombie(t, dead)
	want = append(want, dead)
	slices.Sort(want)
	files, err := proc.Open()
	if err != nil {
		t.Fatal(err)
	}
	r.Hold(func() {
		files.Refresh()
		listed, err := files.Children(os.Getpid(), 0, nil)
		if err != nil {
			t.Error(err)
		}
		var asked []int
		EachChild(func(pid int) { asked = append(asked, pid) })
		if slices.Sort(listed); !slices.Equal(listed, want) || !slices.Equal(asked, want) {
			t.Errorf("started %v, files list %v, waitid knows %v", want, listed, asked)
		}
	})
}

func TestADrainEndsAtItsBoundWhateverHasEndedByThen(t *testing.T) {
	if !alone(t) {
		return
	}
	ended := 0
	r := New(none)
	for range 3 {
		zombie(t, start(t, r, exits, 0, Child{Ended: func(Exit) { ended++ }}))
	}
	if empty, err := r.Drain(time.Now()); empty || err != nil || ended != 1 {
		t.Errorf("empty %v, %v, %d reaped by a drain that was late", empty, err, ended)
	}
	if empty := drain(t, r); !empty || ended != 3 {
		t.Errorf("empty %v, %d reaped in the end", empty, ended)
	}
}
