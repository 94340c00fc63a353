package foster_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	supervisor "github.com/fosterinit/foster/init"
)

// The table of options says the same as the struct it describes: every option with its variable, and no other.
func TestTheOptionsTableIsTheStructs(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Options")
	section, _, _ := strings.Cut(rest, "\n## ")
	var want []string
	for _, s := range supervisor.Settings() {
		if s.Option == "" {
			continue // of several commands
		}
		want = append(want, "--"+s.Option, s.Variable)
		if s.Short != "" {
			want = append(want, "-"+s.Short)
		}
	}
	want = append(want, "--check", "--version", "--help")
	var got []string
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(cells[1]+cells[2], -1) {
			got = append(got, strings.Split(strings.Trim(code, "`"), ", ")...)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the table has %q, the struct %q", got, want)
	}
}
