package sigwait

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// catchable is all that the kernel lets a process catch.
const catchable = ^Set(0) &^ (1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1))

func TestASetHoldsWhatWasPutInLowestFirst(t *testing.T) {
	s := Of(64, unix.SIGTERM, 1)
	if got := slices.Collect(s.All); !slices.Equal(got, []unix.Signal{1, unix.SIGTERM, 64}) {
		t.Errorf("got %v", got)
	}
	if !s.Has(64) || !s.Has(1) || s.Has(2) || s.Has(63) || Of() != 0 {
		t.Errorf("%b has what it should not, or not what it should", s)
	}
	for sig := range s.All {
		if sig != 1 {
			t.Errorf("went on to %v after the end was asked for", sig)
		}
		break
	}
}

func TestEverySignalThatCanBeCaughtIsRecorded(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Catch(catchable, 0); err != nil {
		t.Fatal(err)
	}
	if got := status("SigCgt"); got&catchable != catchable {
		t.Errorf("not caught: %v", names(catchable&^got))
	}
	for sig := range catchable.All {
		send(t, sig)
		// The runtime sends SIGURG whenever it likes.
		if got := until(t, Of(sig)) &^ Of(unix.SIGURG, sig); got != 0 {
			t.Errorf("with %v came %v", sig, names(got))
		}
	}
}

func TestNoSignalIsLostInABurst(t *testing.T) {
	if !alone(t) {
		return
	}
	sent := Of(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCHLD, unix.SIGWINCH, 40, 64)
	if err := Catch(sent, 0); err != nil {
		t.Fatal(err)
	}
	// Each round is a burst while Wait empties the eventfd and reads the marks. A signal that fell between the two
	// would be missing for good: nothing else comes that could wake the reader.
	const rounds = 5000
	next := make(chan struct{})
	go func() { // ends with the rounds
		for range next {
			for sig := range sent.All {
				_ = unix.Kill(os.Getpid(), sig)
			}
		}
	}()
	for range rounds {
		next <- struct{}{}
		until(t, sent)
	}
	close(next)
}

func TestWhatIsIgnoredIsNotRecorded(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Catch(Of(unix.SIGUSR2), Of(unix.SIGPIPE, unix.SIGUSR1)); err != nil {
		t.Fatal(err)
	}
	send(t, unix.SIGPIPE)
	send(t, unix.SIGUSR1)
	send(t, unix.SIGUSR2)
	if got := until(t, Of(unix.SIGUSR2)); got != Of(unix.SIGUSR2) {
		t.Errorf("got %v", names(got))
	}
}

func TestAnIgnoredHangupOrInterruptStaysIgnored(t *testing.T) {
	if !alone(t, "ignoring-hup-and-int") {
		return
	}
	set := Of(unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	if err := Catch(set, 0); err != nil {
		t.Fatal(err)
	}
	if ign, cgt := status("SigIgn"), status("SigCgt"); ign&set != Of(unix.SIGHUP, unix.SIGINT) || cgt&set != Of(unix.SIGTERM) {
		t.Errorf("ignored: %v, caught: %v", names(ign&set), names(cgt&set))
	}
	for sig := range set.All {
		send(t, sig)
	}
	if got := until(t, Of(unix.SIGTERM)); got != Of(unix.SIGTERM) {
		t.Errorf("got %v", names(got))
	}
	if got := childsSignals(t)["SigIgn"]; got != Of(unix.SIGHUP, unix.SIGINT) {
		t.Errorf("a child ignores %v", names(got))
	}
}

func TestAChildOfACatchingProcessHasDefaultDispositions(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Catch(catchable&^Of(unix.SIGPIPE), Of(unix.SIGPIPE)); err != nil {
		t.Fatal(err)
	}
	for name, got := range childsSignals(t) {
		if got != 0 {
			t.Errorf("%s of a child: %v", name, names(got))
		}
	}
}

func TestWhatIsIgnoredIsInheritedUntilItIsReset(t *testing.T) {
	if !alone(t) {
		return
	}
	set := Of(unix.SIGTTIN, unix.SIGTTOU)
	for _, step := range []struct {
		do   func(Set) error
		want Set
	}{{Ignore, set}, {Reset, 0}} {
		if err := step.do(set); err != nil {
			t.Fatal(err)
		}
		if own, childs := status("SigIgn")&set, childsSignals(t)["SigIgn"]; own != step.want || childs != step.want {
			t.Errorf("want %v; ignored here: %v, by a child: %v", names(step.want), names(own), names(childs))
		}
	}
}

func TestEmptyMaskUnblocksAndSaysWhetherThereWasAnything(t *testing.T) {
	if !alone(t) {
		return
	}
	runtime.LockOSThread()
	if err := Catch(Of(unix.SIGUSR1), 0); err != nil {
		t.Fatal(err)
	}
	var mask unix.Sigset_t
	mask.Val[0] = 1 << (unix.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &mask, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if blocked, err := EmptyMask(); err != nil || !blocked {
		t.Errorf("the first time: %v, %v", blocked, err)
	}
	until(t, Of(unix.SIGUSR1))
	if blocked, err := EmptyMask(); err != nil || blocked {
		t.Errorf("the second time: %v, %v", blocked, err)
	}
	if got := childsSignals(t)["SigBlk"]; got != 0 {
		t.Errorf("a child has %v blocked", names(got))
	}
}

func TestDefaultLastsAsLongAsTheCall(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Catch(Of(unix.SIGTSTP), 0); err != nil {
		t.Fatal(err)
	}
	called := false
	err := Default(unix.SIGTSTP, func() {
		called = true
		if status("SigCgt").Has(unix.SIGTSTP) || status("SigIgn").Has(unix.SIGTSTP) {
			t.Error("not the default disposition")
		}
	})
	if err != nil || !called || !status("SigCgt").Has(unix.SIGTSTP) {
		t.Errorf("called %v, error %v, caught again %v", called, err, status("SigCgt").Has(unix.SIGTSTP))
	}
	send(t, unix.SIGTSTP)
	until(t, Of(unix.SIGTSTP))
}

func TestWaitEndsAtTheGivenMoment(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Catch(Of(unix.SIGUSR1), 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for end := began.Add(50 * time.Millisecond); time.Now().Before(end); {
		if got, ready := Wait(end, -1); got != 0 || ready {
			t.Fatalf("out of nothing: %v, %v", names(got), ready)
		}
	}
	if took := time.Since(began); took > patience {
		t.Errorf("took %v", took)
	}
	// A moment that has passed is no wait, and no "never" either.
	if got, ready := Wait(began, -1); got != 0 || ready {
		t.Errorf("for a past moment: %v, %v", names(got), ready)
	}
}

func TestWaitEndsWithASignalOrAReadableDescriptor(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Catch(Of(unix.SIGUSR1), 0); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fd := int(r.Fd())
	ready := func() (got Set, ready bool) {
		for !ready && got == 0 { // it may return early, with nothing
			got, ready = Wait(time.Time{}, fd)
		}
		return got, ready
	}
	go func() { _ = unix.Kill(os.Getpid(), unix.SIGUSR1) }()
	if got, ready := ready(); got != Of(unix.SIGUSR1) || ready {
		t.Errorf("after a signal: %v, %v", names(got), ready)
	}
	go func() { _, _ = w.Write([]byte("x")) }()
	if got, ready := ready(); got != 0 || !ready {
		t.Errorf("with something to read: %v, %v", names(got), ready)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go w.Close()
	if got, ready := ready(); got != 0 || !ready {
		t.Errorf("hung up: %v, %v", names(got), ready)
	}
}
