package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// A starter is one way to run true(1).
type starter struct {
	name string
	argv []string
}

// starters are true itself, foster, and the peers that are there. Each gets true's absolute path: a PATH search is not what
// is being compared.
func (b *bench) starters() ([]starter, error) {
	truth, err := exec.LookPath("true")
	if err != nil {
		return nil, fmt.Errorf("%w: no true(1)", errUnavailable)
	}
	all := []starter{{"true", []string{truth}}, {"foster", []string{b.foster, "--", truth}}}
	for _, p := range peers {
		if p.path() != "" {
			all = append(all, starter{p.name, append(append([]string{p.path()}, p.child...), truth)})
		}
	}
	return all, nil
}

func (b *bench) startup() ([]row, error) {
	if b.noTool != nil {
		return nil, b.noTool
	}
	all, err := b.starters()
	if err != nil {
		return nil, err
	}
	rounds := b.count(1000)
	var args []string
	if b.rt {
		args = append(args, "-R")
	}
	args = append(args, strconv.Itoa(rounds))
	for i, s := range all {
		if i > 0 {
			args = append(args, "::")
		}
		args = append(args, s.argv...)
	}
	out, err := b.command(b.ctx, "spawn", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot time the starts: %w: %s", err, exitText(err))
	}
	series, err := parseRounds(out, len(all))
	if err != nil {
		return nil, err
	}
	return startupRows(all, series), nil
}

func exitText(err error) string {
	if e, ok := err.(*exec.ExitError); ok {
		return tail(string(e.Stderr))
	}
	return ""
}

// parseRounds turns lines of one round each into a series for each command.
func parseRounds(out []byte, commands int) ([][]float64, error) {
	series := make([][]float64, commands)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != commands {
			return nil, fmt.Errorf("cannot read the round %q", lines.Text())
		}
		for i, f := range fields {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return nil, fmt.Errorf("cannot read the round %q", lines.Text())
			}
			series[i] = append(series[i], v)
		}
	}
	return series, lines.Err()
}

func startupRows(all []starter, series [][]float64) []row {
	beyond := make(map[string][]float64)
	var details []string
	for i, s := range all {
		diff := make([]float64, len(series[i]))
		for r := range diff {
			diff[r] = series[i][r] - series[0][r]
		}
		beyond[s.name] = diff
		if i == 0 {
			details = append(details, fmt.Sprintf("%s: median %s", s.name, ms(median(series[0]))))
			continue
		}
		details = append(details, fmt.Sprintf("%s: median %s in all; beyond true %s (10th to 90th percentile %s to %s)", s.name,
			ms(median(series[i])), ms(median(diff)), ms(quantile(diff, 0.1)), ms(quantile(diff, 0.9))))
	}
	name := fmt.Sprintf("`foster -- true` beyond `true`, median of %d interleaved rounds", len(series[0]))
	rows := []row{against(name+", against tini's", "tini", 1.5, beyond), against("the same, against timeout(1)'s", "timeout", 1, beyond)}
	rows[0].details = details
	for _, other := range []string{"dumb-init", "catatonit"} {
		r := against("the same, against "+other+"'s", other, 0, beyond)
		r.goal, r.verdict = "(none)", "for comparison"
		rows = append(rows, r)
	}
	return rows
}

func against(name, other string, goal float64, beyond map[string][]float64) row {
	r := row{figure: name, goal: fmt.Sprintf("at most %g x", goal), reached: "-", verdict: "not measured: " + other + " is missing"}
	if beyond[other] != nil {
		v := ratioOf(beyond["foster"], beyond[other])
		r.reached, r.verdict = v.String(), atMost(v.value, goal)
	}
	return r
}

// size is that of the binary as it is shipped; a dynamic or unstripped one would be another figure.
func (b *bench) size() ([]row, error) {
	info, err := os.Stat(b.foster)
	if err != nil {
		return nil, fmt.Errorf("cannot measure the binary: %w", err)
	}
	f, err := elf.Open(b.foster)
	if err != nil {
		return nil, fmt.Errorf("cannot read the binary: %w", err)
	}
	defer f.Close()
	kind := "static, stripped"
	if f.Section(".interp") != nil {
		kind = "DYNAMIC"
	}
	if f.Section(".symtab") != nil {
		kind += ", NOT STRIPPED"
	}
	r := row{
		figure: "static binary, stripped", goal: "at most 3000000 bytes",
		reached: fmt.Sprintf("%d bytes (%s, %s)", info.Size(), kind, f.Machine), verdict: atMost(float64(info.Size()), 3e6),
	}
	for _, p := range peers {
		if info, err := os.Stat(p.path()); err == nil {
			r.details = append(r.details, fmt.Sprintf("%s: %d bytes", p.name, info.Size()))
		}
	}
	return []row{r}, nil
}
