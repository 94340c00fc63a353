package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestACommandsOwnSettingBeatsThatForAll(t *testing.T) {
	plan := load(t, nil, []string{
		"FOSTER_COMMANDS=web,db-2", "FOSTER_TIMEOUT=5", "FOSTER_WEB_COMMAND=a 'b c' \"d\"", "FOSTER_DB_2_COMMAND=[\"x\", \"$y\"]", "FOSTER_DB_2_TIMEOUT=7s",
		"FOSTER_UMASK=22", "FOSTER_WEB_UMASK=unchanged", "A=1",
	})
	web, db := plan.commands[0], plan.commands[1]
	if web.Spec.Timeout != 5*time.Second || db.Spec.Timeout != 7*time.Second || web.Spec.Umask != nil || *db.Spec.Umask != 0o22 {
		t.Errorf("got %+v\n%+v", web.Spec, db.Spec)
	}
	if !slices.Equal(web.Spec.Args, []string{"a", "b c", "d"}) || !slices.Equal(db.Spec.Args, []string{"x", "$y"}) {
		t.Errorf("got %q, %q", web.Spec.Args, db.Spec.Args)
	}
	if !slices.Equal(web.Spec.Env, []string{"A=1"}) {
		t.Errorf("got %q", web.Spec.Env)
	}
}

func TestTheCommandOfTheCommandLineIsTheLastMainCommand(t *testing.T) {
	plan := load(t, []string{"--", "nginx", "-g", "daemon off;"}, []string{"FOSTER_COMMANDS=migrate", "FOSTER_MIGRATE_COMMAND=m", "FOSTER_MIGRATE_TYPE=init", "FOSTER_MAIN_TIMEOUT=3"})
	last := plan.commands[1]
	if last.Name != "main" || last.Spec.Timeout != 3*time.Second || !slices.Equal(last.Spec.Args, []string{"nginx", "-g", "daemon off;"}) {
		t.Errorf("got %+v", last)
	}
	if len(last.needs) != 1 || last.needs[0].on.Name != "migrate" || last.needs[0].until != CompletedRun {
		t.Errorf("got %+v", last.needs)
	}
}

func TestWhatIsWrongWithSeveralCommandsIsNamed(t *testing.T) {
	dir := t.TempDir()
	nul := filepath.Join(dir, "nul")
	if err := os.WriteFile(nul, []byte("a\x00b"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variables, source, text string }{
		{"COMMANDS=a A_COMMAND=x A_DEPENDS_ON=b:ready", "FOSTER_A_DEPENDS_ON", `no command "b"`},
		{"COMMANDS=a,b A_COMMAND=x B_COMMAND=x A_DEPENDS_ON=b:ready B_DEPENDS_ON=a:started", "FOSTER_A_DEPENDS_ON", "a -> b -> a"},
		{"COMMANDS=a A_COMMAND=x A_DEPENDS_ON=a:started", "FOSTER_A_DEPENDS_ON", "itself"},
		{"COMMANDS=a,b A_COMMAND=x B_COMMAND=x B_RESTART_POLICY=Always A_DEPENDS_ON=b:completed", "FOSTER_A_DEPENDS_ON", "never completes"},
		{"COMMANDS=a A_COMMAND=x A_DEPENDS_ON=b", "FOSTER_A_DEPENDS_ON", "name:started"},
		{"COMMANDS=a", "FOSTER_A_COMMAND", "not set"},
		{"COMMANDS=a A_COMMAND=x A_TYPE=init", "FOSTER_COMMANDS", "no main command"},
		{"COMMANDS=a,b A_COMMAND=x B_COMMAND=x A_TYPE=init A_RESTART_POLICY=Always", "FOSTER_A_RESTART_POLICY", "complete"},
		{"COMMANDS=a,b A_COMMAND=x B_COMMAND=x A_STDIN=inherit B_STDIN=inherit", "FOSTER_B_STDIN", "stdin"},
		{"COMMANDS=a A_COMMAND=x A_READY_TCP=80 A_READY_FD=3", "FOSTER_A_READY_…", "more than one"},
		{"COMMANDS=a A_COMMAND=x A_ENV_K=1 A_ENV_K_FILE=/etc/passwd", "FOSTER_A_ENV_K_FILE", "as well"},
		{"COMMANDS=a A_COMMAND=x A_ENV_K_FILE=" + nul, "FOSTER_A_ENV_K_FILE", "NUL"},
		{"COMMANDS=a A_COMMAND=x A_ENV_K_FILE=/dev/zero", "FOSTER_A_ENV_K_FILE", "longer"},
		{"COMMANDS=a,a A_COMMAND=x", "FOSTER_COMMANDS", `"a"`},
		{"COMMANDS=a-b,a.b A_B_COMMAND=x", "FOSTER_COMMANDS", `"a.b"`},
		{"COMMANDS=shutdown SHUTDOWN_COMMAND=x", "FOSTER_COMMANDS", "foster itself"},
		{"COMMANDS=web,web_ready WEB_COMMAND=x WEB_READY_COMMAND=x", "FOSTER_COMMANDS", "web_ready"},
		{"COMMANDS=port PORT_COMMAND=x", "FOSTER_COMMANDS", "Service"},
		{"COMMANDS=a,,b A_COMMAND=x B_COMMAND=x", "FOSTER_COMMANDS", "name"},
		{"COMMANDS=a A_COMMAND=x|y|| A_COMAND=x", "FOSTER_A_COMAND", "unknown"},
		{"COMMANDS=a A_COMMAND=x A_FORWARD_SIGNALS=HUP,TERM", "FOSTER_A_FORWARD_SIGNALS", "TERM"},
		{"COMMANDS=a A_COMMAND=x A_LIMIT_NOFILE=2:1", "FOSTER_A_LIMIT_NOFILE", "limit"},
		{"COMMANDS=a A_COMMAND=x A_NICE=20", "FOSTER_A_NICE", "-20 to 19"},
		{"COMMANDS=a A_COMMAND=x PASS_FDS=3", "FOSTER_PASS_FDS", ""},
	} {
		var environ []string
		for _, v := range strings.Fields(c.variables) {
			environ = append(environ, "FOSTER_"+v)
		}
		list := problems(t, nil, environ)
		if p := list[0]; p.Source != c.source || !strings.Contains(p.Text, c.text) {
			t.Errorf("%s: got %v", c.variables, list)
		}
		for _, p := range list {
			if p.Hint == "" && !strings.Contains(p.Text, "write") {
				t.Errorf("%s: no way out: %v", c.variables, p)
			}
		}
	}
	// These are different enough.
	load(t, nil, []string{"FOSTER_COMMANDS=web,web_2", "FOSTER_WEB_COMMAND=x", "FOSTER_WEB_2_COMMAND=x"})
}

func TestArgvIsWordsOrExact(t *testing.T) {
	for text, want := range map[string][]string{
		`a b`: {"a", "b"}, `a 'b c'`: {"a", "b c"}, `["a","b c"]`: {"a", "b c"}, `a \$x`: {"a", "$x"}, `[ "a" , "" ]`: {"a", ""},
		`nginx -g 'daemon off;'`: {"nginx", "-g", "daemon off;"},
	} {
		var a Argv
		if err := a.UnmarshalText([]byte(text)); err != nil || !slices.Equal(a, want) {
			t.Errorf("%s: %q, %v", text, a, err)
		}
	}
	for _, text := range []string{``, `[]`, `[""]`, `["a"`, `[1]`, `a && b`, `a | b`, `a 'b`, `["a\u0000"]`, `a > b`} {
		var a Argv
		if err := a.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %q", text, a)
		}
	}
}

func TestLimitsAddressesAndSignalsAreWhatTheySay(t *testing.T) {
	for text, want := range map[string]string{"1024": "1024", "1:2": "1:2", "unlimited": "unlimited", "5:unlimited": "5:unlimited"} {
		var l Limit
		if err := l.UnmarshalText([]byte(text)); err != nil || l.String() != want {
			t.Errorf("%s: %v, %v", text, l, err)
		}
	}
	for text, want := range map[string]string{"80": "127.0.0.1:80", ":80": "127.0.0.1:80", "localhost:80": "127.0.0.1:80", "[::1]:80": "[::1]:80"} {
		var a Address
		if err := a.UnmarshalText([]byte(text)); err != nil || a.String() != want {
			t.Errorf("%s: %v, %v", text, a, err)
		}
	}
	for _, text := range []string{"", "0", "x", "example.org:80", "70000", "-1"} {
		if err := new(Address).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is an address", text)
		}
	}
	var s Signals
	if err := s.UnmarshalText([]byte("HUP, USR1")); err != nil || s.String() != "HUP,USR1" || s[0] != Signal(unix.SIGHUP) {
		t.Errorf("%v, %v", s, err)
	}
}

func TestTheCheckOfSeveralCommandsShowsTheOrderAndHidesSecrets(t *testing.T) {
	text := load(t, []string{"--check"}, []string{
		"FOSTER_COMMANDS=migrate,web", "FOSTER_MIGRATE_COMMAND=m --token t0p", "FOSTER_MIGRATE_TYPE=init", "FOSTER_WEB_COMMAND=w", "FOSTER_WEB_ENV_API_TOKEN=t0p",
		"FOSTER_WEB_ENV_PLAIN=seen",
	}).Describe()
	for _, want := range []string{"# web, a command of type main", "starts when migrate is completed", "FOSTER_WEB_ENV_PLAIN=seen", "FOSTER_WEB_RESTART_POLICY=Never", "FOSTER_WEB_ENV_API_TOKEN=***"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "t0p") {
		t.Errorf("a secret is in\n%s", text)
	}
}

// The lines are variables.
func FuzzNoConfigurationOfSeveralCommandsCrashes(f *testing.F) {
	f.Add("FOSTER_COMMANDS=a,b\nFOSTER_A_COMMAND=x\nFOSTER_B_COMMAND=[\"y\"]\nFOSTER_B_DEPENDS_ON=a:ready\nFOSTER_A_READY_TCP=80")
	f.Add("FOSTER_COMMANDS=a,a-b,a.b\nFOSTER_A_B_ENV_X=1\nFOSTER_A_B_ENV_X_FILE=/etc/hostname\nFOSTER_A_LIMIT_CORE=0:unlimited")
	f.Add("FOSTER_COMMANDS=main\nFOSTER_MAIN_COMMAND='a\nFOSTER_MAIN_ENV_=1\nFOSTER__COMMAND=1")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "_FILE") || strings.Contains(text, "REPORT") || strings.Contains(text, "TERMINATION") {
			return // Load opens the file, whatever it is
		}
		environ := strings.Split(text, "\n")
		plan, err := Load(nil, environ)
		if err != nil {
			return
		}
		_ = plan.Describe()
		for _, c := range plan.commands {
			if c.reaches(c, nil) || len(c.Spec.Args) == 0 || slices.ContainsFunc(c.Spec.Env, func(e string) bool { return strings.HasPrefix(e, Prefix) }) {
				t.Errorf("accepted, but cannot start: %+v", c.Spec)
			}
		}
	})
}

func TestNoEnvReadsNoVariable(t *testing.T) {
	environ := []string{"FOSTER_COMMANDS=a", "FOSTER_NONSENSE=1", "FOSTER_TIMEOUT=5", "A=1"}
	plan := load(t, []string{"--no-env", "-g", "0", "--", "probe"}, environ)
	if !plan.alone() || plan.line.Spec.Timeout != 0 || plan.line.Spec.GracePeriod != 0 || !slices.Equal(plan.line.Spec.Env, []string{"A=1"}) {
		t.Errorf("got %+v", plan.line.Spec)
	}
	// It is foster's own option, not the command's.
	if _, err := Load([]string{"probe", "--no-env"}, environ); err == nil {
		t.Error("an option of the command was taken for foster's")
	}
}
