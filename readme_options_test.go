package foster_test

import (
	"fmt"
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
	want = append(want, "--no-env", "--check", "--version", "--help")
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

// The table of what can be set for one of several commands is made from the struct: where it is not the same, the test
// prints it.
func TestTheTableOfSeveralCommandsIsTheStructs(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| key | default | meaning |\n|---|---|---|\n")
	shared := map[string]bool{}
	for _, s := range supervisor.Settings() {
		shared[s.Key] = true
	}
	for _, s := range supervisor.CommandSettings() {
		if shared[s.Key] {
			continue
		}
		value := s.Default
		if value == "" {
			value = "none"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", s.Key, value, s.Help)
	}
	if !strings.Contains(string(text), want.String()) {
		t.Errorf("not in README.md:\n%s", want.String())
	}
}
