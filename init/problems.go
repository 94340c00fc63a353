package supervisor

import (
	"errors"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with the configuration.
type Problem struct {
	Source string // the variable or option, empty if there is none
	Text   string
	Hint   string // what to do, empty if Text says it
}

func (p Problem) String() string {
	s := p.Text
	if p.Source != "" {
		s = p.Source + ": " + s
	}
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// Problems are all that is wrong, found in one go.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(problem Problem) { *p = append(*p, problem) }

// about reports whether there is one with this source.
func (p *Problems) about(source string) bool {
	return slices.ContainsFunc(*p, func(q Problem) bool { return q.Source == source })
}

// err returns nil if there are none. What is set for all commands is wrong for
// each, and said once.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int { return strings.Compare(a.Source, b.Source) })
	return slices.Compact(p)
}

// ErrHelp and ErrVersion are returned by Load when that was asked for.
var (
	ErrHelp    = errors.New("help requested")
	ErrVersion = errors.New("version requested")
)

// didYouMean suggests the name that is nearest to a mistyped one.
func didYouMean(name string, known []string) string {
	best, least := "", min(max(3, len(name)/4), len(strings.TrimLeft(name, "-"))-1)+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "see --help for what there is"
	}
	return "did you mean " + best + "?"
}

// distance is Levenshtein's: how many letters have to be changed, put in or
// taken out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
