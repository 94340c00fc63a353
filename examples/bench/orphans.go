package main

import (
	"fmt"
	"strconv"
)

const (
	stream = 20000 // orphans in a row
	heap   = 5000  // orphans that are dead all at once
	// backlog bounds the zombies that a slow init may leave in the stream.
	backlog = 4000
)

// orphans compares inits as PID 1. In a stream the load's forks are the greater part of the work; the heap shows the init's
// part alone.
func (b *bench) orphans() ([]row, error) {
	if err := b.caged(); err != nil {
		return nil, err
	}
	inits := []starter{{"foster", []string{b.foster, "--"}}}
	for _, p := range peers {
		if p.asInit && p.path() != "" {
			inits = append(inits, starter{p.name, []string{p.path(), "--"}})
		}
	}
	streams, heaps := make(map[string][]float64), make(map[string][]float64)
	for round := range b.count(9) {
		for i := range inits {
			in := inits[(i+round)%len(inits)]
			rate, err := b.streamRate(in)
			if err != nil {
				return nil, err
			}
			streams[in.name] = append(streams[in.name], rate)
			if rate, err = b.heapRate(in); err != nil {
				return nil, err
			}
			heaps[in.name] = append(heaps[in.name], rate)
		}
	}
	return []row{
		rateRow(fmt.Sprintf("orphans reaped a second, %d forked as fast as possible", stream), streams),
		rateRow(fmt.Sprintf("orphans reaped a second, %d dead ones waiting", heap), heaps),
	}, nil
}

func (b *bench) streamRate(in starter) (float64, error) {
	if err := b.group.limit(backlog); err != nil {
		return 0, fmt.Errorf("cannot set the pids limit: %w", err)
	}
	load := []string{b.tools["load"], "orphans", strconv.Itoa(stream), b.group.load}
	o, err := b.cage(trial{command: append(append([]string(nil), in.argv...), load...)})
	if err != nil {
		return 0, err
	}
	var ns int64
	if _, err := fmt.Sscanf(o.output, "elapsed_ns=%d", &ns); err != nil || o.status != 0 {
		return 0, fmt.Errorf("the load under %s ended with %#x and said %q", in.name, int(o.status), o.output)
	}
	return stream / (float64(ns) / 1e9), nil
}

func (b *bench) heapRate(in starter) (float64, error) {
	if err := b.group.limit(heap + 100); err != nil {
		return 0, fmt.Errorf("cannot set the pids limit: %w", err)
	}
	load := []string{b.tools["load"], "drain", strconv.Itoa(heap), b.group.load}
	o, err := b.cage(trial{drain: true, command: append(append([]string(nil), in.argv...), load...)})
	return heap / o.elapsed.Seconds(), err
}

// rateRow holds foster against the better of tini and dumb-init.
func rateRow(name string, rates map[string][]float64) row {
	r := row{figure: name, goal: "at least tini's and dumb-init's", reached: "-", verdict: "not measured: tini and dumb-init are missing"}
	best := ""
	for _, p := range peers {
		if rates[p.name] == nil {
			continue
		}
		if p.name != "catatonit" && (best == "" || median(rates[p.name]) > median(rates[best])) {
			best = p.name
		}
		v := ratioOf(rates["foster"], rates[p.name])
		r.details = append(r.details, fmt.Sprintf("%s: median %.0f/s, %.0f to %.0f; foster has %s x (%.2f to %.2f)", p.name,
			median(rates[p.name]), quantile(rates[p.name], 0), quantile(rates[p.name], 1), below(v.value, 3), v.low, v.high))
	}
	r.details = append(r.details, fmt.Sprintf("foster: median %.0f/s, %.0f to %.0f",
		median(rates["foster"]), quantile(rates["foster"], 0), quantile(rates["foster"], 1)))
	if best != "" {
		v := ratioOf(rates["foster"], rates[best])
		r.reached = fmt.Sprintf("%s x %s's (%.2f to %.2f)", below(v.value, 3), best, v.low, v.high)
		r.verdict = atLeast(v.value, 1)
	}
	return r
}
