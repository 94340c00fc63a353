package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

func TestS01_AStopTakesNoFixedTime(t *testing.T) { alone(t, everywhere(), s01) }

// The best of three, because the machine may be slow for a moment, and a fixed sleep is slow each time.
func s01(t *testing.T, w nstest.World) {
	best := time.Hour
	for range 3 {
		r := w.Start(t, "--", "sh", "-c", "echo ready; exec sleep inf").Expect("ready").Until("sleep", running("sleep inf"))
		pid := r.Pid()
		began := time.Now()
		if err := unix.Kill(pid, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.AwaitGone(pid)
		best = min(best, time.Since(began))
		r.Wait().Exits(143).Clean().Ends("Stopped").Silent()
	}
	if best > nstest.Slow(200*time.Millisecond) {
		t.Errorf("a stop took %v at best", best)
	}
}

func TestS03_WhatIsPrintedWhileStoppingArrives(t *testing.T) { in(t, everywhere(), s03) }

func s03(t *testing.T, w nstest.World) {
	r := w.Start(t, "--", "sh", "-c", "trap 'seq 1 5000; exit 0' TERM; echo ready; sleep inf & wait")
	// A signal that finds the shell's new child before its exec is lost between the two.
	r.Expect("ready").Until("sleep", running("sleep inf"))
	o := r.Signal(unix.SIGTERM).Wait().Exits(0).Before(soon).Clean().Ends("Stopped")
	lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	if len(lines) != 5001 || lines[5000] != "5000" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestS04_AMemberOfTheGroupThatIgnoresTERMIsKilled(t *testing.T) { in(t, everywhere(), s04) }

func s04(t *testing.T, w nstest.World) {
	r := w.Start(t, "-g", "500ms", "--", "sh", "-c",
		`sh -c 'trap "" TERM; echo ready; sleep 7071' & wait`).Expect("ready")
	pid, began := r.Pid(), time.Now()
	r.Signal(unix.SIGTERM).AwaitGone(pid)
	if took := time.Since(began); took < 500*time.Millisecond || took > nstest.Slow(soon) {
		t.Errorf("took %v", took)
	}
	r.Wait().Exits(143).Killed(1, 0).Clean().Ends("Stopped")
}

// A SIGTERM before foster's first instruction ends it, as it would end any program: there was nothing to stop then.
func TestS05_ATERMAtAnyMomentOfTheStartStops(t *testing.T) {
	for _, spread := range []string{"50ms", "5ms"} {
		t.Run(spread, func(t *testing.T) {
			t.Run("subreaper", func(t *testing.T) {
				t.Parallel()
				strikes(t, nil, "-n", fmt.Sprint(nstest.Rounds(200)), "-spread", spread, "-early")
			})
			t.Run("pid1", func(t *testing.T) {
				t.Parallel()
				strikes(t, []string{nstest.Helper(t), "ns", "{}"}, "-n", fmt.Sprint(nstest.Rounds(200)), "-spread", spread, "-early", "-pid1")
			})
		})
	}
}

// strikes runs foster with a signal for each start. launcher is what becomes foster, if that takes one.
func strikes(t *testing.T, launcher []string, args ...string) {
	t.Helper()
	w := nstest.Subreaper()
	w.Program = append(append([]string{w.Helper(t), "strike", "-program", w.Foster(t)}, args...), launcher...)
	wants(t, w.Run(t, w.Foster(t), "--", "sleep", "7071"))
}

func TestS08_OrphansAreReapedAsTheyDie(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		script := "i=0; while [ $i -lt 1000 ]; do (sleep 0.1 &); i=$((i+1)); done; echo ready; exec sleep inf"
		r := w.Start(t, "--", "sh", "-c", script)
		reaped(t, r)
		r.Until("none but the command", func(all []wire.Process) bool {
			return len(all) <= 3 && running("sleep inf")(all)
		})
		r.Signal(unix.SIGTERM).Wait().Exits(143).Clean()
	})
}

// reaped watches until the command is ready that no zombie of foster's stays. An instant is what a busy machine may
// keep foster waiting; that it does not look only now and then is T13's to find out.
func reaped(t *testing.T, r *nstest.Run) {
	t.Helper()
	const instant = 3 * time.Second
	since := map[int]time.Time{}
	for !strings.Contains(r.Output(), "ready") {
		all := r.Processes()
		seen := map[int]time.Time{}
		for _, p := range all {
			if p.State != "Z" || !named(all, p.Parent, "foster") {
				continue
			}
			seen[p.Pid] = time.Now()
			if first, known := since[p.Pid]; known {
				seen[p.Pid] = first
			}
			if time.Since(seen[p.Pid]) > instant {
				t.Fatalf("a zombie for longer than an instant: %v", p)
			}
		}
		since = seen
		time.Sleep(20 * time.Millisecond)
	}
}

func named(all []wire.Process, pid int, name string) bool {
	return slices.ContainsFunc(all, func(p wire.Process) bool { return p.Pid == pid && p.Name == name })
}

func TestS09_AGrandchildMayFinishItsCleaning(t *testing.T) { in(t, everywhere(), s09) }

func s09(t *testing.T, w nstest.World) {
	r := w.Start(t, "--", "sh", "-c", fmt.Sprintf("%s slow-stop 600ms & wait", w.Helper(t))).Expect("ready")
	r.Signal(unix.SIGTERM).Wait().Exits(143).Before(soon).Prints("cleaned up").Killed(0, 0).Clean()
}

// The group has had its signal when this member joins it.
func TestS09_AChildBornWhileStoppingIsToldToo(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		r := w.Start(t, "-g", "20", "--", "sh", "-c",
			"trap 'sleep 7071 & exit 0' TERM; echo ready; while :; do sleep 0.01; done").Expect("ready")
		began := time.Now()
		r.Signal(unix.SIGTERM).Wait().Exits(0).Killed(0, 0).Clean()
		if took := time.Since(began); took > nstest.Slow(soon) {
			t.Errorf("took %v", took)
		}
	})
}

// The first 300 µs are those in which others lose one signal in ten, or nine.
func TestS10_NoSignalIsLostRightAfterTheStart(t *testing.T) {
	for i, target := range []string{"process", "group", "tree"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGUSR1} {
				w := nstest.Subreaper()
				w.Env = []string{"FOSTER_SIGNAL_TARGET=" + target}
				w.Program = []string{
					w.Helper(t), "strike", "-program", w.Foster(t), "-child", "-spread", "1ms",
					"-n", fmt.Sprint(nstest.Rounds(167 - i%2)), "-signal", fmt.Sprint(int(signal)),
				}
				wants(t, w.Run(t, w.Foster(t), "--", "sleep", "7071"))
			}
		})
	}
}

func TestS10_NoSignalIsLostRightAfterTheStartAsPID1(t *testing.T) {
	t.Parallel()
	strikes(t, []string{nstest.Helper(t), "ns", "{}"}, "-pid1", "-child", "-spread", "1ms", "-n", fmt.Sprint(nstest.Rounds(200)))
}
