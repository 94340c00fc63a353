package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

const (
	deadline = 300 * time.Millisecond // of rows whose point is not the number itself
	soon     = 10 * time.Second       // at once, with room for a machine that has other things to do
)

func TestT01_TheDeadlineEndsTheRunAndThePipe(t *testing.T) { in(t, everywhere(), t01) }

func t01(t *testing.T, w nstest.World) {
	o, d := w.RunPast(t, time.Second, "-g", "0", "--", "sh", "-c", `sh -c "echo ready; exec sleep 80"; true`)
	o.Exits(124).After(d).Before(d+soon).Killed(2, 0).Clean().Ends("DeadlineExceeded").Silent()
}

func TestT02_AChildInTheBackgroundIsGoneAndNoZombie(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		file := filepath.Join(t.TempDir(), "pid")
		o, d := w.RunPast(t, deadline, "-g", "0", "--", "sh", "-c", `sleep 7071 & echo $! > "$1"; echo ready; wait`, "_", file)
		o.Exits(124).After(d).Before(d+soon).Killed(2, 0).Clean()
		// Clean has seen that no process is left; this sees that there was one.
		if pid, err := os.ReadFile(file); err != nil || len(strings.TrimSpace(string(pid))) == 0 {
			t.Errorf("no pid: %q, %v", pid, err)
		}
	})
}

func TestT03_ASetsidChildDiesAtTheDeadline(t *testing.T) { in(t, everywhere(), t03) }

func t03(t *testing.T, w nstest.World) {
	o, d := w.RunPast(t, deadline, "-g", "0", "--", "sh", "-c", `setsid sh -c "echo ready; exec sleep 7071" & sleep 90`)
	o.Exits(124).After(d).Before(d+soon).Killed(2, 1).Clean().Silent()
}

func TestT04_ADoubleForkWithAnEmptyEnvironmentIsNoWayOut(t *testing.T) { in(t, everywhere(), t04) }

func t04(t *testing.T, w nstest.World) {
	o, d := w.RunPast(t, deadline, "-g", "0", "--", "sh", "-c",
		`(setsid sh -c "env -i sleep 7071 & echo ready; env -i sleep 7071" &) ; sleep 90`)
	o.Exits(124).After(d).Before(d+soon).Killed(3, 2).Clean().Silent()
}

func TestT05_AChildThatIgnoresTERMIsKilledAfterTheGracePeriod(t *testing.T) { in(t, everywhere(), t05) }

// The deadline passes while the grace period of the leftovers runs, and changes nothing.
func t05(t *testing.T, w nstest.World) {
	o, _ := w.RunPast(t, 200*time.Millisecond, "-g", "600ms", "--", "sh", "-c",
		`trap "" TERM; (trap "" TERM; sleep 7071) & echo ready; exit 0`)
	o.Exits(0).After(600*time.Millisecond).Before(soon).Killed(1, 0).Clean().Ends("Completed")
}

func TestT06_TheRunEndsWithItsMainProcessNotAtTheDeadline(t *testing.T) { in(t, everywhere(), t06) }

func t06(t *testing.T, w nstest.World) {
	o := w.Run(t, "-t", "30", "--", "sh", "-c", "sleep 7071 & exit 7")
	o.Exits(7).Before(soon).Clean().Ends("Error").Silent()
}

func TestT07_WhatOutlivesItsMainProcessWritesNothingMore(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		late := filepath.Join(t.TempDir(), "LATE")
		o := w.Run(t, "--", "sh", "-c", `(sleep 3; touch "$1") & exit 0`, "_", late)
		o.Exits(0).Before(soon).Clean()
		if _, err := os.Stat(late); err == nil {
			t.Error("LATE was written")
		}
	})
}

func TestT08_LeftoversMayBeLeft(t *testing.T) {
	t.Parallel()
	r := nstest.Subreaper().Start(t, "--leftovers", "leave", "--", "sh", "-c", "sleep 7071 & echo up")
	o := r.Wait().Exits(0).Before(soon).Prints("up").Killed(0, 0)
	if len(o.Left) != 1 || o.EOF {
		t.Fatalf("left: %v, EOF %v", o.Left, o.EOF)
	}
	r.Until("the sleep alive", running("sleep 7071"))
}

func TestT09_LeftoversMayBeWaitedFor(t *testing.T) { in(t, everywhere(), t09) }

func t09(t *testing.T, w nstest.World) {
	o := w.Run(t, "--leftovers", "wait", "--", "sh", "-c", "(sleep 0.5; echo late) & exit 3")
	o.Exits(3).After(500*time.Millisecond).Before(soon).Prints("late").Killed(0, 0).Clean().Silent()
}

func TestT10_APipelineDiesUnderEveryShell(t *testing.T) {
	for _, shell := range [][]string{{"bash"}, {"dash"}, {"busybox", "sh"}} {
		t.Run(shell[0], func(t *testing.T) {
			in(t, namespaces(), func(t *testing.T, w nstest.World) {
				nstest.NeedProgram(t, shell[0])
				t10(t, w, shell...)
			})
		})
	}
	in(t, containers(), func(t *testing.T, w nstest.World) { t10(t, w, "sh") })
}

func t10(t *testing.T, w nstest.World, shell ...string) {
	args := append([]string{"-t", "300ms", "--"}, shell...)
	o := w.Run(t, append(args, "-c", "sleep 7071 | cat")...)
	o.Exits(124).After(deadline).Before(soon).Clean()
}

func TestT11_AStoppedCommandIsContinuedSoThatItCanEnd(t *testing.T) { in(t, everywhere(), t11) }

func t11(t *testing.T, w nstest.World) {
	o := w.Run(t, "-t", "300ms", "--", "sh", "-c", "kill -STOP $$")
	o.Exits(124).After(deadline).Before(soon).Killed(0, 0).Clean().Silent()
}

func TestT12_AProcessWhoseMainThreadIsGoneIsKilledAllTheSame(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o, d := w.RunPast(t, deadline, "-g", "100ms", "--", w.Helper(t), "main-exits")
		o.Exits(124).After(d).Before(d+soon).Killed(1, 0).Clean()
	})
}

func TestT13_WhileTheCommandSleepsFosterDoesNotRun(t *testing.T) {
	alone(t, namespaces(), func(t *testing.T, w nstest.World) {
		r := w.Start(t, "--", "sh", "-c", "exec >&- 2>&-; exec sleep 30")
		idle(t, r.Until("sleep", running("sleep 30")).Pid())
		r.Signal(unix.SIGTERM).Wait().Exits(143).Clean()
	})
}

// running looks for a process with these arguments.
func running(args string) func([]wire.Process) bool {
	return func(all []wire.Process) bool {
		return slices.ContainsFunc(all, func(p wire.Process) bool { return p.Args == args })
	}
}

// idle wants a second in which the kernel switched to no thread at all. The first ones may still see the Go runtime
// settle.
func idle(t *testing.T, pid int) {
	t.Helper()
	before := switches(t, pid)
	for range 10 {
		time.Sleep(time.Second)
		now := switches(t, pid)
		if now == before {
			return
		}
		before = now
	}
	t.Errorf("never idle: %d switches", before)
}

// switches counts how often the kernel has switched away from the threads of a process.
func switches(t *testing.T, pid int) (n int) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.HasSuffix(name, "_ctxt_switches") {
				k, _ := strconv.Atoi(strings.TrimSpace(value))
				n += k
			}
		}
	}
	if n == 0 {
		t.Fatalf("no process %d", pid)
	}
	return n
}
