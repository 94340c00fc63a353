// Command bench measures what foster promises about its own cost, each figure in one run together with its peers, and prints
// the result as a Markdown table. Run it from the repository's root: go run ./examples/bench
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A bench is what every measurement needs. It is used by one goroutine.
type bench struct {
	ctx    context.Context
	dir    string // temporary: binaries, reports
	foster string
	tools  map[string]string // the C helpers, by name; empty without gcc
	group  *cgroup           // nil where there is none to be had
	noTool error             // why tools is empty
	noCage error             // why group is nil
	runs   int               // 0: each figure's own default
	idle   time.Duration
	rt     bool // startup, sweep and orphans under SCHED_RR
}

// A figure is one line of the list that -only chooses from.
type figure struct {
	name    string
	measure func(*bench) ([]row, error)
}

var figures = []figure{
	{"startup", (*bench).startup},
	{"size", (*bench).size},
	{"idle", (*bench).idling},
	{"sweep", (*bench).sweep},
	{"orphans", (*bench).orphans},
	{"storm", (*bench).storm},
	{"many", (*bench).many},
}

// errUnavailable marks a figure that cannot be had on this machine: that is said in the table, and is no failure.
var errUnavailable = errors.New("not measured")

func init() {
	// The helpers die with the thread that started them (Pdeathsig): it has to be one that lives as long as the program.
	runtime.LockOSThread()
}

func main() {
	os.Exit(run())
}

func run() int {
	only := flag.String("only", "", "figures to measure, comma-separated: "+names()+" (default all)")
	runs := flag.Int("n", 0, "runs of each measurement (default: startup 1000, sweep 11, orphans 9, storm 10)")
	idle := flag.Duration("idle", 60*time.Second, "how long to watch the idle process")
	rt := flag.Bool("rt", false, "run startup, sweep and orphans under SCHED_RR, where the machine cannot be made quiet (root)")
	foster := flag.String("foster", "", "binary to measure (default: cmd/foster, built here)")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench: cannot use the arguments:", errors.Join(err, extra(flag.Args())))
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	b := &bench{ctx: ctx, foster: *foster, runs: *runs, idle: *idle, rt: *rt}
	defer b.cleanUp()
	if err := b.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return b.measureAll(chosen)
}

// measureAll goes on after a failure: the other figures are still worth having.
func (b *bench) measureAll(chosen []figure) int {
	rep := report{head: b.machine()}
	code := 0
	for _, f := range chosen {
		progress("%s (load average %s)", f.name, firstField("/proc/loadavg"))
		rows, err := f.measure(b)
		if err != nil {
			rows = append(rows, row{figure: f.name, reached: "-", verdict: err.Error()})
		}
		rep.rows = append(rep.rows, rows...)
		if err != nil && !errors.Is(err, errUnavailable) {
			code = 1
		}
		if b.ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench: interrupted")
			return 1
		}
	}
	rep.print(os.Stdout)
	return code
}

func names() string {
	var all []string
	for _, f := range figures {
		all = append(all, f.name)
	}
	return strings.Join(all, ",")
}

func choose(only string) ([]figure, error) {
	if only == "" {
		return figures, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no figure is called %q; there are %s", name, names())
		}
		chosen = append(chosen, figures[i])
	}
	return chosen, nil
}

func extra(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected %q", args)
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// count is the number of runs, unless -n has set it.
func (b *bench) count(standard int) int {
	if b.runs > 0 {
		return b.runs
	}
	return standard
}
