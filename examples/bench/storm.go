package main

import (
	"errors"
	"fmt"
	"time"
)

// A storming is one storm and what is to be reached against it.
type storming struct {
	name     string
	ordinary bool
	procs    int
	goal     time.Duration
}

var stormings = []storming{
	{"700-process storm under a pids limit, not PID 1", true, 700, 5 * time.Second},
	{"1500-process storm as PID 1", false, 1500, 1500 * time.Millisecond},
}

const (
	// room is what the limit leaves beside the storm for foster's threads; the storm takes what foster does not.
	room = 50
	// rage is how long a storm rages before it is stopped.
	rage = time.Second
	// stormDeadline leaves a storm time to fill the limit.
	stormDeadline = 3 * time.Second
)

func (b *bench) storm() ([]row, error) {
	if err := b.caged(); err != nil {
		return nil, err
	}
	var rows []row
	for _, s := range stormings {
		r, err := b.stormRow(s)
		rows = append(rows, r)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// stormRow ends every other storm by a signal and the rest by a deadline: both must reach foster in the midst of it.
func (b *bench) stormRow(s storming) (row, error) {
	r := row{figure: s.name, goal: fmt.Sprintf("empty within %v, each time", s.goal), reached: "-", verdict: "FAILED"}
	if err := b.group.limit(s.procs + room); err != nil {
		return r, fmt.Errorf("cannot set the pids limit: %w", err)
	}
	var took []time.Duration
	runs, good := b.count(10), 0
	for i := range runs {
		o, err := b.stormOnce(s, i%2 == 1)
		if errors.Is(err, errFoster) {
			r.details = append(r.details, fmt.Sprintf("run %d: %v", i+1, err))
			continue
		}
		if err != nil {
			return r, err
		}
		took = append(took, o.elapsed)
		if o.elapsed <= s.goal && o.left == 0 {
			good++
		}
		r.details = append(r.details, fmt.Sprintf("run %d: empty after %v, %d killed by foster's count, %d left", i+1, o.elapsed, o.killed, o.left))
	}
	r.reached = fmt.Sprintf("%d of %d: %s s", good, runs, seconds(took))
	r.verdict = "met"
	if good < runs {
		r.verdict = fmt.Sprintf("MISSED %d times of %d", runs-good, runs)
	}
	r.details = append(r.details, fmt.Sprintf("stopped in turn by SIGTERM after %v of storm and by its deadline (which includes foster's start)", rage))
	err := b.kernelAlone(s, &r)
	return r, err
}

func (b *bench) stormOnce(s storming, deadline bool) (outcome, error) {
	t := trial{fair: true, ordinary: s.ordinary, procs: s.procs, settle: rage, stop: true}
	if deadline {
		t = trial{fair: true, ordinary: s.ordinary, procs: s.procs, deadline: stormDeadline}
	}
	o, err := b.cageFoster(t, 1, b.tools["load"], "storm")
	progress("%s: %v, %d killed, %d left", s.name, o.elapsed, o.killed, o.left)
	return o, err
}

// kernelAlone shows what a PID 1 that kills nobody would take: it ends, and the kernel kills the namespace.
func (b *bench) kernelAlone(s storming, r *row) error {
	tini := peers[0]
	if s.ordinary || tini.path() == "" {
		return nil
	}
	var took []time.Duration
	for range min(3, b.count(3)) {
		o, err := b.cage(trial{fair: true, procs: s.procs, settle: rage, stop: true, command: []string{tini.path(), "--", b.tools["load"], "storm"}})
		if err != nil {
			return err
		}
		took = append(took, o.elapsed)
	}
	r.details = append(r.details, "tini as PID 1, where the kernel alone ends the storm: "+seconds(took)+" s")
	return nil
}
