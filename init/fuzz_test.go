package supervisor

import (
	"slices"
	"strings"
	"testing"
)

// The lines of args and environ are the arguments and variables.
func FuzzWhatLoadAcceptsItAcceptsAgainAndMeansTheSame(f *testing.F) {
	for _, seed := range [][2]string{
		{"true", ""},
		{"-t\n5\n-g=0\n--\nsh\n-c\nexit", "A=1\nFOSTER_UMASK=22\nFOSTER_STOP_SIGNAL=RTMIN+3"},
		{"--check\n--timeout=1m\n--log-level\ndebug+1\ntrue", "FOSTER_TIMEOUT=x\nFOSTER_PORT=x\nHOME=/"},
		{"--user\n1000:1000\ntrue", "FOSTER_SUCCESS_EXIT_CODES=0,143\nFOSTER_LEFTOVERS=wait"},
		{"--timout\n5\ntrue", "FOSTER_TIMOUT=5\nFOSTER_UMASK=\nFOSTER_="},
		{"-t=1\n-t\n2\n-x\n-\n--\n", "=\n\nFOSTER_SIGNAL_TARGET"},
		{"--pass-fds\n3,3\n--report=fd:1\n--password\nx", "FOSTER_WORKING_DIR=/\nFOSTER_USER=root"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, args, environ string) {
		if strings.Contains(args+environ, "report") || strings.Contains(args+environ, "REPORT") {
			return // Load opens the file, whatever it is
		}
		plan, err := Load(strings.Split(args, "\n"), strings.Split(environ, "\n"))
		if err != nil {
			return
		}
		first := plan.Describe()
		again, err := Load(append([]string{"--check", "--"}, plan.line.Spec.Args...), effective(first))
		if err != nil {
			t.Fatalf("%q, %q: accepted, but not what it says of itself: %v\n%s", args, environ, err, first)
		}
		if second := again.Describe(); !slices.Equal(effective(first), effective(second)) {
			t.Errorf("first:\n%s\nthen:\n%s", first, second)
		}
		if slices.ContainsFunc(plan.line.Spec.Env, func(e string) bool { return strings.HasPrefix(e, Prefix) }) {
			t.Errorf("the command sees %q", plan.line.Spec.Env)
		}
	})
}

// effective is the environment that --check describes: of each line what is before the note at its end.
func effective(description string) (environ []string) {
	for _, line := range strings.Split(description, "\n") {
		line, _, _ = strings.Cut(line, "  (")
		if _, value, _ := strings.Cut(line, "="); strings.HasPrefix(line, Prefix) && value != "" {
			environ = append(environ, line)
		}
	}
	return environ
}
