package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAllThatIsWrongIsFoundInOneGoEachUnderItsName(t *testing.T) {
	environ := []string{
		"FOSTER_TIMOUT=5", "FOSTER_UMASK=9", "FOSTER_GRACE_PERIOD=", "FOSTER_STOP_SIGNAL=TREM", "FOSTER_SIGNAL_TARGET=grp",
		"FOSTER_LEFTOVERS=keep", "FOSTER_SUCCESS_EXIT_CODES=300", "FOSTER_PASS_FDS=2", "FOSTER_REPORT=fd:0", "FOSTER_LOG_LEVEL=loud",
		"FOSTER_LOG_FORMAT=xml", "FOSTER_USER=no-such-user", "FOSTER_WORKING_DIR=/no/such/directory",
	}
	got := problems(t, []string{"--timeout", "soon"}, environ)
	want := []string{"", "--timeout"} // no command
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		want = append(want, name)
	}
	slices.Sort(want)
	var sources []string
	for _, p := range got {
		sources = append(sources, p.Source)
		_, value, _ := strings.Cut(environ[max(0, slices.IndexFunc(environ, func(e string) bool { return strings.HasPrefix(e, p.Source+"=") }))], "=")
		if p.Source != "" && p.Source != "--timeout" && value != "" && p.Source != "FOSTER_TIMOUT" && !strings.Contains(p.Text, value) {
			t.Errorf("%v: does not say what was given", p)
		}
	}
	if !slices.Equal(sources, want) {
		t.Errorf("got  %v\nwant %v", sources, want)
	}
	if lines := strings.Split(got.Error(), "\n"); len(lines) != len(got) {
		t.Errorf("%d lines for %d problems", len(lines), len(got))
	}
}

func TestAMistypedNameGetsASuggestion(t *testing.T) {
	for name, want := range map[string]string{
		"FOSTER_TIMOUT": "FOSTER_TIMEOUT", "FOSTER_GRACEPERIOD": "FOSTER_GRACE_PERIOD", "FOSTER_STOPSIGNAL": "FOSTER_STOP_SIGNAL",
		"FOSTER_WORKINGDIR": "FOSTER_WORKING_DIR", "FOSTER_timeout": "", "FOSTER_": "", "FOSTER_ENTIRELY_DIFFERENT_THING": "",
	} {
		p := one(t, []string{"true"}, []string{name + "=1"})
		if p.Source != name || p.Hint == "" || want != "" && p.Hint != "did you mean "+want+"?" {
			t.Errorf("%s: %v", name, p)
		}
	}
	for option, want := range map[string]string{"--timout": "--timeout", "--grace-perod": "--grace-period", "--chek": "--check"} {
		if p := one(t, []string{option, "5", "true"}, nil); p.Source != option || p.Hint != "did you mean "+want+"?" {
			t.Errorf("%s: %v", option, p)
		}
	}
}

func TestAnOptionIsGivenOnceWithAValue(t *testing.T) {
	for _, c := range []struct {
		args []string
		want Problem
	}{
		{[]string{"-t", "1", "--timeout", "2", "true"}, Problem{"--timeout", `given twice, "1" and "2"`, "give it once"}},
		{[]string{"--umask=22", "--umask=22", "true"}, Problem{"--umask", `given twice, "22" and "22"`, "give it once"}},
		{[]string{"--timeout=", "true"}, Problem{"--timeout", "empty value", "give it a value or leave the option out"}},
		{[]string{"--user", "", "true"}, Problem{"--user", "empty value", "give it a value or leave the option out"}},
		{[]string{"--timeout"}, Problem{"--timeout", "needs a value", "see --help"}},
		{[]string{}, Problem{"", "no command to run", "foster [options] [--] COMMAND [ARG...]"}},
		{[]string{"--"}, Problem{"", "no command to run", "foster [options] [--] COMMAND [ARG...]"}},
		{[]string{"--", ""}, Problem{"", "no command to run", "foster [options] [--] COMMAND [ARG...]"}},
	} {
		if got := one(t, c.args, nil); got != c.want {
			t.Errorf("%q: got %+v", c.args, got)
		}
	}
	// An empty option beats the variable too: its value is not silently taken.
	if got := one(t, []string{"--timeout=", "true"}, []string{"FOSTER_TIMEOUT=5"}); got.Source != "--timeout" {
		t.Errorf("got %v", got)
	}
}

func TestAnEmptyVariableIsAProblem(t *testing.T) {
	for _, s := range Settings() {
		if p := one(t, []string{"true"}, []string{s.Variable + "="}); p.Source != s.Variable || p.Text != "empty value" {
			t.Errorf("%s: %v", s.Variable, p)
		}
	}
}

func TestADescriptorMustBeOneThatFosterWasGiven(t *testing.T) {
	const closed = 999
	for variable, key := range map[string]string{"FOSTER_PASS_FDS": "%d", "FOSTER_REPORT": "fd:%d"} {
		if p := one(t, []string{"true"}, []string{variable + "=" + fmt.Sprintf(key, closed)}); p.Source != variable || !strings.Contains(p.Text, "999") {
			t.Errorf("%s: %v", variable, p)
		}
		load(t, []string{"true"}, []string{variable + "=" + fmt.Sprintf(key, inherited(t))})
		// What foster opened itself, at a number that it was not given, is not the caller's.
		own, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load([]string{"true"}, []string{variable + "=" + fmt.Sprintf(key, own.Fd())}); err == nil {
			t.Errorf("%s may be a descriptor of foster's own", variable)
		}
		_ = own.Close()
	}
	both := problems(t, []string{"true"}, []string{"FOSTER_PASS_FDS=999", "FOSTER_REPORT=fd:999"})
	if len(both) != 2 || both[0].Source != "FOSTER_PASS_FDS" || both[1].Source != "FOSTER_REPORT" {
		t.Errorf("the same descriptor for both: %v", both)
	}
}

func TestAReportThatCannotBeWrittenIsAProblem(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "no", "such", "file")} {
		if p := one(t, []string{"--report", path, "true"}, nil); p.Source != "--report" || !strings.Contains(p.Text, path) {
			t.Errorf("got %v", p)
		}
	}
	t.Chdir(dir)
	if got := load(t, []string{"--report", "here", "--working-dir", "/", "true"}, nil).Config.Report.Path; got != filepath.Join(dir, "here") {
		t.Errorf("a relative path depends on the directory of the command: %s", got)
	}
}

func TestAWorkingDirectoryMustBeOne(t *testing.T) {
	for dir, cause := range map[string]string{"/no/such": "no such file", "/dev/null": "not a directory"} {
		if p := one(t, []string{"--working-dir", dir, "true"}, nil); p.Source != "--working-dir" || !strings.Contains(p.Text, cause) {
			t.Errorf("got %v", p)
		}
	}
}

func TestDistanceCountsLetters(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"kitten", "sitting", 3}, {"timout", "timeout", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
