package nstest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// Outcome is how a run ended. Its methods report what is not as it must be and return the outcome for the next.
type Outcome struct {
	wire.Ended
	Stdout, Stderr string
	EOF            bool // both pipes had ended with the run

	t               testing.TB
	init, container bool
	report          string
}

// Report is one line of foster's report.
type Report struct {
	Name      string     `json:"name"`
	Attempt   int        `json:"attempt"`
	Started   time.Time  `json:"started_at"`
	Pid       int        `json:"pid"`
	Reason    string     `json:"reason"`
	ExitCode  int        `json:"exit_code"`
	Duration  float64    `json:"duration_ms"`
	Killed    int        `json:"killed"`
	Escaped   int        `json:"escaped"`
	Survivors []Survivor `json:"survivors"`
}

// Survivor is a process that foster could not end.
type Survivor struct {
	Pid    int    `json:"pid"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason"`
}

// Exits wants this exit code.
func (o *Outcome) Exits(code int) *Outcome {
	o.t.Helper()
	if o.Code != code {
		o.t.Errorf("exit code %d (signal %d), want %d\n%s", o.Code, o.Signal, code, o)
	}
	return o
}

// After wants the run to have lasted so long. A container's start is known too roughly to ask.
func (o *Outcome) After(least time.Duration) *Outcome {
	o.t.Helper()
	if o.Elapsed < least && !o.container {
		o.t.Errorf("back after %v, want %v at least\n%s", o.Elapsed, least, o)
	}
	return o
}

// Before wants the run to have been over by then.
func (o *Outcome) Before(most time.Duration) *Outcome {
	o.t.Helper()
	if o.Elapsed > Slow(most) {
		o.t.Errorf("back after %v, want %v at most\n%s", o.Elapsed, Slow(most), o)
	}
	return o
}

// Clean wants nothing left: no process, no zombie, nobody who holds a pipe. When foster was PID 1 the kernel has seen
// to that in any case, and foster's own account has to do: see Killed, which it must have got from wait.
func (o *Outcome) Clean() *Outcome {
	o.t.Helper()
	for _, p := range o.Left {
		o.t.Errorf("left behind: %v", p)
	}
	if !o.EOF {
		o.t.Errorf("somebody still holds a pipe\n%s", o)
	}
	for _, r := range o.Reports() {
		if len(r.Survivors) != 0 {
			o.t.Errorf("survivors of %s: %v", r.Name, r.Survivors)
		}
	}
	return o
}

// Ends wants a run to be reported with this reason.
func (o *Outcome) Ends(reason string) *Outcome {
	o.t.Helper()
	if got := o.Report().Reason; got != reason {
		o.t.Errorf("reason %q, want %q\n%s", got, reason, o)
	}
	return o
}

// Killed wants so many processes at least to have been killed, and so many of them outside the main process's group.
func (o *Outcome) Killed(least, escaped int) *Outcome {
	o.t.Helper()
	if r := o.Report(); r.Killed < least || r.Escaped < escaped {
		o.t.Errorf("killed %d, escaped %d, want %d and %d at least\n%s", r.Killed, r.Escaped, least, escaped, o)
	}
	return o
}

// Prints wants this text on stdout.
func (o *Outcome) Prints(text string) *Outcome {
	o.t.Helper()
	if !strings.Contains(o.Stdout, text) {
		o.t.Errorf("did not print %q\n%s", text, o)
	}
	return o
}

// Warns wants each of these texts on stderr.
func (o *Outcome) Warns(texts ...string) *Outcome {
	o.t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.Stderr, text) {
			o.t.Errorf("did not say %q\n%s", text, o)
		}
	}
	return o
}

// Silent wants foster to have said nothing at all.
func (o *Outcome) Silent() *Outcome {
	o.t.Helper()
	for line := range strings.Lines(o.Stderr) {
		if !strings.HasPrefix(line, "{") {
			o.t.Errorf("said %q", line)
		}
	}
	return o
}

// Report is the one line that foster reported.
func (o *Outcome) Report() Report {
	o.t.Helper()
	all := o.Reports()
	if len(all) != 1 {
		o.t.Errorf("%d lines reported, want 1\n%s", len(all), o)
		return Report{}
	}
	return all[0]
}

// Reports are all lines that foster reported, in their order.
func (o *Outcome) Reports() (all []Report) {
	o.t.Helper()
	for line := range strings.Lines(o.report) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var r Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			o.t.Errorf("report %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// Ran wants the runs of the command to have ended with these exit codes, in this order.
func (o *Outcome) Ran(name string, codes ...int) *Outcome {
	o.t.Helper()
	var got []int
	for _, r := range o.Reports() {
		if r.Name == name {
			got = append(got, r.ExitCode)
		}
	}
	if !slices.Equal(got, codes) {
		o.t.Errorf("%s ended with %v, want %v\n%s", name, got, codes, o)
	}
	return o
}

func (o *Outcome) String() string {
	return "stdout: " + tail(o.Stdout) + "\nstderr: " + tail(o.Stderr) + "\nreport: " + tail(o.report)
}

func tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "..." + s[len(s)-most:]
	}
	return s
}
