package main

import (
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// sleepers is how many sessions the sweep has to find.
const sleepers = 1000

// A shape is one kind of tree, and one way to end it.
type shape struct {
	name     string
	load     string // shape of `load sleepers`
	yard     string // shape of `load loop`, the C loop that it is measured against
	deadline bool
}

var shapes = []shape{
	{"`sleep`, children of the main process, stopped by SIGTERM", "direct", "direct", false},
	{"the same, ended by its deadline (foster's own start is in the figure)", "direct", "direct", true},
	{"`sleep`, orphans, stopped by SIGTERM", "orphans", "direct", false},
	{"forked without exec (cheaper to kill, so the loop is faster), stopped by SIGTERM", "plain", "plain", false},
}

// sweepDeadline is long enough for a slow machine to have started all sleepers.
const sweepDeadline = 6 * time.Second

// sweep runs all shapes and both loops in each round.
func (b *bench) sweep() ([]row, error) {
	if err := b.caged(); err != nil {
		return nil, err
	}
	if err := b.group.limit(2*sleepers + 100); err != nil {
		return nil, fmt.Errorf("cannot set the pids limit: %w", err)
	}
	loops := make(map[string][]float64)
	swept := make([][]float64, len(shapes))
	for range b.count(11) {
		for _, yard := range []string{"direct", "plain"} {
			ns, err := b.loop(yard)
			if err != nil {
				return nil, err
			}
			loops[yard] = append(loops[yard], ns)
		}
		for i, s := range shapes {
			ns, err := b.sweepOnce(s)
			if err != nil {
				return nil, err
			}
			swept[i] = append(swept[i], ns)
		}
	}
	var rows []row
	for i, s := range shapes {
		r := ratioOf(swept[i], loops[s.yard])
		rows = append(rows, row{
			fmt.Sprintf("deadline to tree empty, %d sessions: %s", sleepers, s.name), "at most 1.5 x a C loop", r.String(),
			atMost(r.value, 1.5),
			[]string{"foster: " + spread(swept[i]), "C loop: " + spread(loops[s.yard])},
		})
	}
	return rows, nil
}

// calm lets the start's own work end before the stop.
const calm = 300 * time.Millisecond

func (b *bench) loop(yard string) (float64, error) {
	o, err := b.cage(trial{
		ordinary: true, line: true, settle: calm, stop: true,
		command: []string{b.tools["load"], "loop", strconv.Itoa(sleepers), yard},
	})
	if err == nil && (o.status != 0 || o.left != 0) {
		err = fmt.Errorf("the C loop ended with %#x and left %d processes", int(o.status), o.left)
	}
	return float64(o.elapsed), err
}

func (b *bench) sweepOnce(s shape) (float64, error) {
	t := trial{ordinary: true, line: true, settle: calm, stop: true}
	want := 128 + int(syscall.SIGKILL)
	if s.deadline {
		t = trial{ordinary: true, line: true, deadline: sweepDeadline}
		want = 124
	}
	o, err := b.cageFoster(t, sleepers, b.tools["load"], "sleepers", strconv.Itoa(sleepers), s.load)
	if err == nil && (o.status.ExitStatus() != want || o.left != 0) {
		err = fmt.Errorf("foster ended with %#x and left %d processes", int(o.status), o.left)
	}
	return float64(o.elapsed), err
}
