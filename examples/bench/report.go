package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A row is one line of the table and the measurements behind it.
type row struct {
	figure, goal, reached, verdict string
	details                        []string
}

type report struct {
	head []string
	rows []row
}

func (r report) print(w io.Writer) {
	for _, line := range r.head {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w, "\n| figure | goal | reached | verdict |\n|---|---|---|---|")
	for _, row := range r.rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", row.figure, row.goal, row.reached, row.verdict)
	}
	for _, row := range r.rows {
		if len(row.details) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s:\n\n", row.figure)
		for _, d := range row.details {
			fmt.Fprintln(w, "* "+d)
		}
	}
}

// machine says what the figures were taken on; without that they mean nothing.
func (b *bench) machine() []string {
	lines := []string{fmt.Sprintf("Linux %s, %d CPUs, %s, load average at the start %s",
		firstField("/proc/sys/kernel/osrelease"), runtime.NumCPU(), runtime.Version(), firstField("/proc/loadavg"))}
	var have []string
	for _, p := range peers {
		have = append(have, p.version())
	}
	lines = append(lines, "peers: "+strings.Join(have, ", "))
	if b.rt {
		lines = append(lines, "startup, sweep and orphans: everything under SCHED_RR")
	}
	if b.noTool != nil {
		lines = append(lines, b.noTool.Error())
	}
	if b.noCage != nil {
		lines = append(lines, b.noCage.Error())
	}
	return lines
}

func firstField(path string) string {
	data, _ := os.ReadFile(path)
	field, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return field
}

// A peer is a program that does a part of what foster does.
type peer struct {
	name   string
	child  []string // its arguments as an ordinary process, before the command
	asInit bool     // can be PID 1
}

var peers = []peer{
	{"tini", []string{"-s", "--"}, true},
	{"dumb-init", []string{"--"}, true},
	{"catatonit", []string{"--"}, true},
	{"timeout", []string{"10"}, false},
}

func (p peer) path() string {
	path, err := exec.LookPath(p.name)
	if err != nil {
		return ""
	}
	return path
}

func (p peer) version() string {
	if p.path() == "" {
		return p.name + " MISSING (a package of Debian's; its comparisons are not made)"
	}
	// dumb-init prints its version on stderr.
	out, err := exec.Command(p.path(), "--version").CombinedOutput()
	if err != nil {
		return p.name + " of unknown version"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if i := strings.LastIndexByte(line, ' '); i >= 0 {
		line = line[i+1:]
	}
	return p.name + " " + line
}
