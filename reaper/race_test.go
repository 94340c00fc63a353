package reaper

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNoStatusIsLostHoweverFastTheChildWhileOrphansRainIn(t *testing.T) {
	if !alone(t) {
		return
	}
	const starters, each = 4, 400
	changed := children(t)
	var exited, orphaned atomic.Int64
	r := New(func(e Exit) {
		if e.Status.ExitStatus() != 77 {
			t.Errorf("a status that belongs to a child came as an orphan's: %d", e.Status.ExitStatus())
		}
		orphaned.Add(1)
	})
	var started sync.WaitGroup
	for range starters {
		started.Go(func() {
			for i := range each {
				code := i % 77
				start(t, r, exits, code, Child{Ended: func(e Exit) {
					if exited.Add(1); e.Status.ExitStatus() != code {
						t.Errorf("exited with %d, reported as %d", code, e.Status.ExitStatus())
					}
				}})
			}
		})
	}
	started.Go(func() {
		for range each {
			start(t, r, orphans, 77, Child{Ended: func(e Exit) {
				if exited.Add(1); e.Status.ExitStatus() != 0 {
					t.Errorf("an orphan's parent exited with %d", e.Status.ExitStatus())
				}
			}})
		}
	})
	all := make(chan struct{})
	go func() { // ends with the starters
		started.Wait()
		close(all)
	}()
	// Drained all the time, not only after SIGCHLD: a child is to be reaped before its parent has heard of its pid.
	for done := false; !done; drain(t, r) {
		select {
		case <-all:
			done = true
		default:
		}
	}
	await(t, "the last child's end", changed, func() bool { return drain(t, r) })
	if exited.Load() != (starters+1)*each || orphaned.Load() != each {
		t.Errorf("%d children, %d orphans; want %d and %d", exited.Load(), orphaned.Load(), (starters+1)*each, each)
	}
	if len(r.children) != 0 {
		t.Errorf("still registered: %v", r.children)
	}
}

// The race detector is what looks on.
func TestEveryMethodMayBeCalledFromAnyGoroutine(t *testing.T) {
	if !alone(t) {
		return
	}
	changed := children(t)
	ended := 0 // no lock: callbacks run under the reaper's
	r := New(none)
	pids := make(chan int, 16)
	var all, users sync.WaitGroup
	const starters, each = 3, 100
	for range starters {
		all.Go(func() {
			for range each {
				pids <- start(t, r, sleeps, 0, Child{Ending: func() { ended += 0 }, Ended: func(Exit) { ended++ }})
			}
		})
	}
	for range 2 {
		users.Go(func() {
			for pid := range pids {
				r.Hold(func() { ended += 0 })
				r.Stopped(pid)
				if err := r.Signal(pid, unix.SIGKILL); err != nil {
					t.Errorf("a living child could not be signalled: %v", err)
				}
				if err := r.Signal(pid, unix.SIGKILL); err != nil && !errors.Is(err, ErrNotChild) {
					t.Error(err)
				}
				drain(t, r)
			}
		})
	}
	all.Wait()
	close(pids)
	users.Wait()
	await(t, "the last child's end", changed, func() bool { return drain(t, r) })
	if ended != starters*each {
		t.Errorf("%d of %d", ended, starters*each)
	}
}
