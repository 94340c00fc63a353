package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trialBound ends a trial that hangs. Every load ends by itself before that.
const trialBound = 90 * time.Second

// errFoster marks a trial in which foster did not do its work. That is a result where a storm rages, else the end of a figure.
var errFoster = errors.New("foster failed")

// A trial is one run of a command in a cage; testdata/cage.c says what each field does.
type trial struct {
	ordinary bool // an ordinary process, not PID 1
	line     bool
	procs    int
	settle   time.Duration
	stop     bool
	deadline time.Duration
	drain    bool
	fair     bool // never under SCHED_RR: a storm there would be the end of the machine
	command  []string
}

type outcome struct {
	elapsed time.Duration
	status  syscall.WaitStatus
	left    int
	killed  int    // by foster's report
	output  string // what the command itself wrote on stdout, if the trial does not wait for a line
}

// caged says why no trial can be made, if so.
func (b *bench) caged() error {
	if b.noTool != nil {
		return b.noTool
	}
	return b.noCage
}

func (b *bench) cageArgs(t trial) []string {
	args := []string{"-c", b.group.init, "-s", strconv.FormatInt(t.settle.Milliseconds(), 10)}
	for flag, on := range map[string]bool{"-i": t.ordinary, "-r": t.line, "-t": t.stop, "-R": b.rt && !t.fair} {
		if on {
			args = append(args, flag)
		}
	}
	if t.procs > 0 {
		args = append(args, "-n", strconv.Itoa(t.procs))
	}
	if t.deadline > 0 {
		args = append(args, "-d", strconv.FormatInt(t.deadline.Milliseconds(), 10))
	}
	if t.drain {
		args = append(args, "-z", b.group.load)
	}
	return append(append(args, "--"), t.command...)
}

// cage runs a trial. Whatever comes of it, its processes are gone before the next one starts.
func (b *bench) cage(t trial) (outcome, error) {
	ctx, cancel := context.WithTimeout(b.ctx, trialBound)
	defer cancel()
	cmd := b.command(ctx, "cage", b.cageArgs(t)...)
	// The pipes' other ends may be held by a storm: the cage's end is what counts.
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	empty := b.group.awaitEmpty(30 * time.Second)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return outcome{}, fmt.Errorf("%w: %q did not end in %v", errFoster, t.command, trialBound)
	}
	if err != nil {
		return outcome{}, fmt.Errorf("cannot run %q in a cage: %w: %s", t.command, err, tail(stderr.String()))
	}
	if !empty {
		return outcome{}, fmt.Errorf("%q left processes %v", t.command, b.group.procs())
	}
	return parseOutcome(stdout.String())
}

func parseOutcome(text string) (outcome, error) {
	last := strings.TrimSuffix(text, "\n")
	first := ""
	if i := strings.LastIndexByte(last, '\n'); i >= 0 {
		first, last = last[:i], last[i+1:]
	}
	var ns int64
	var status, left int
	if _, err := fmt.Sscanf(last, "elapsed_ns=%d status=%d left=%d", &ns, &status, &left); err != nil {
		return outcome{}, fmt.Errorf("cannot read the cage's result %q: %w", last, err)
	}
	return outcome{elapsed: time.Duration(ns), status: syscall.WaitStatus(status), left: left, output: first}, nil
}

func tail(s string) string {
	return s[max(0, len(s)-400):]
}

// A fosterReport is the part of foster's own report that the figures are checked against.
type fosterReport struct {
	Reason    string            `json:"reason"`
	Killed    int               `json:"killed"`
	Survivors []json.RawMessage `json:"survivors"`
}

// cageFoster runs foster in a cage and adds its own account. It is an error if foster says otherwise than what was seen: a
// fast sweep of half a tree is no result.
func (b *bench) cageFoster(t trial, killed int, load ...string) (outcome, error) {
	path := filepath.Join(b.dir, "report.json")
	defer os.Remove(path)
	args := []string{b.foster, "-g", "0", "--report", path}
	if t.deadline > 0 {
		args = append(args, "-t", t.deadline.String())
	}
	t.command = append(append(args, "--"), load...)
	o, err := b.cage(t)
	if err != nil {
		return o, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return o, fmt.Errorf("%w: no report, wait status %#x", errFoster, int(o.status))
	}
	var r fosterReport
	if err := json.Unmarshal(data, &r); err != nil {
		return o, fmt.Errorf("%w: cannot read its report %q: %w", errFoster, data, err)
	}
	o.killed, o.left = r.Killed, max(o.left, len(r.Survivors))
	if r.Killed < killed {
		return o, fmt.Errorf("%w: it reports %d killed, there were %d: %s", errFoster, r.Killed, killed, data)
	}
	return o, nil
}
