package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

func TestWithoutSettingsTheDefaultsHold(t *testing.T) {
	t.Setenv("FOSTER_TIMEOUT", "5") // only what Load is given counts
	plan := load(t, []string{"true"}, nil)
	want := Config{
		Shared:   Shared{GracePeriod: Duration(10 * time.Second), StopSignal: Signal(unix.SIGTERM), SuccessExitCodes: ExitCodes{0}},
		LogLevel: LogLevel(slog.LevelWarn), LogFormat: "auto", ShutdownTimeout: Duration(25 * time.Second),
	}
	if !reflect.DeepEqual(plan.Config, want) {
		t.Errorf("got  %+v\nwant %+v", plan.Config, want)
	}
	spec := exec.Spec{
		Args: []string{"true"}, GracePeriod: exec.DefaultGracePeriod, StopSignal: unix.SIGTERM, Attempt: 1, Env: plan.line.Spec.Env,
	}
	if !reflect.DeepEqual(plan.line.Spec, spec) || len(plan.line.Spec.Env) != 0 || plan.Check {
		t.Errorf("got %+v", plan.line.Spec)
	}
}

func TestEverySettingReachesTheSpec(t *testing.T) {
	dir := t.TempDir()
	fd := inherited(t)
	plan := load(t, []string{
		"-t", "5", "-g=0", "--stop-signal", "RTMIN+3", "--signal-target", "tree", "--leftovers=wait", "--success-exit-codes", "0,143",
		"--working-dir", dir, "--umask", "027", "--pass-fds", fmt.Sprint(fd), "--report", filepath.Join(dir, "report"),
		"--termination-message", filepath.Join(dir, "message"), "--log-level", "debug", "--log-format", "json",
		"--", "sh", "-c", "exit", "--timeout",
	}, []string{"A=1", "FOSTER_USER=1000:1001", "HOME=/root"})
	mask := 0o027
	want := exec.Spec{
		Attempt: 1, Args: []string{"sh", "-c", "exit", "--timeout"}, Dir: dir, Umask: &mask,
		Credential: &exec.Credential{UID: 1000, GID: 1001}, Timeout: 5 * time.Second, StopSignal: 37,
		SignalTarget: exec.TargetTree, Leftovers: exec.LeftoversWait, Env: plan.line.Spec.Env,
	}
	if !reflect.DeepEqual(plan.line.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", plan.line.Spec, want)
	}
	c := plan.Config
	if slog.Level(c.LogLevel) != slog.LevelDebug || c.LogFormat != "json" || c.PassFDs[0] != fd || c.TerminationPath == "" || c.Report.Path == "" {
		t.Errorf("got %+v", c)
	}
}

func TestAnOptionBeatsItsVariable(t *testing.T) {
	plan := load(t, []string{"--timeout", "1", "true"}, []string{"FOSTER_TIMEOUT=nonsense", "FOSTER_GRACE_PERIOD=3"})
	if plan.line.Spec.Timeout != time.Second || plan.line.Spec.GracePeriod != 3*time.Second {
		t.Errorf("got %+v", plan.line.Spec)
	}
}

func TestACommandNeverSeesFostersVariables(t *testing.T) {
	environ := []string{"A=1", "FOSTER_TIMEOUT=1", "FOSTER_SERVICE_HOST=10.0.0.1", "FOO=100%d $x %(y)s", "FOSTERX=1", "ODD"}
	want := []string{"A=1", "FOO=100%d $x %(y)s", "FOSTERX=1", "ODD"}
	if got := load(t, []string{"true"}, environ).line.Spec.Env; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if environ[1] != "FOSTER_TIMEOUT=1" {
		t.Error("the caller's list was changed")
	}
}

func TestWhatKubernetesInjectsForAServiceCalledFosterIsPassedOver(t *testing.T) {
	load(t, []string{"true"}, []string{
		"FOSTER_SERVICE_HOST=10.0.0.1", "FOSTER_SERVICE_PORT=80", "FOSTER_SERVICE_PORT_HTTP=80", "FOSTER_PORT=tcp://10.0.0.1:80",
		"FOSTER_PORT_80_TCP=tcp://10.0.0.1:80", "FOSTER_PORT_80_TCP_PROTO=tcp", "FOSTER_PORT_80_TCP_PORT=80", "FOSTER_PORT_80_TCP_ADDR=10.0.0.1",
	})
	if p := one(t, []string{"true"}, []string{"FOSTER_SERVICE=x"}); p.Source != "FOSTER_SERVICE" {
		t.Errorf("got %v", p)
	}
}

func TestHelpAndVersionNeedNoCommand(t *testing.T) {
	for option, want := range map[string]error{"--help": ErrHelp, "-h": ErrHelp, "--version": ErrVersion} {
		if _, err := Load([]string{option}, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", option, err)
		}
	}
	usage := Usage()
	if lines := strings.Split(usage, "\n"); len(lines) > 25 || slices.ContainsFunc(lines, func(l string) bool { return len(l) > 100 }) {
		t.Errorf("does not fit a screen: %d lines\n%s", len(lines), usage)
	}
	for _, s := range Settings() {
		if s.Option != "" && (!strings.Contains(usage, "--"+s.Option) || s.Help == "" || s.Arg == "") {
			t.Errorf("%s is not in the help: %+v", s.Option, s)
		}
	}
}

func TestTheCheckSaysWhatIsInEffectAndWhereItComesFrom(t *testing.T) {
	plan := load(t, []string{"--check", "-t", "90", "--", "sh", "-c", "echo \"$1\""}, []string{"FOSTER_STOP_SIGNAL=sigint", "FOSTER_UMASK=22"})
	if !plan.Check {
		t.Error("not a check")
	}
	got := strings.Split(strings.TrimSpace(plan.Describe()), "\n")
	for _, want := range []string{
		`command: ["sh", "-c", "echo \"$1\""]`, "FOSTER_TIMEOUT=1m30s  (from -t)", "FOSTER_STOP_SIGNAL=INT", "FOSTER_UMASK=022",
		"FOSTER_GRACE_PERIOD=10s  (default)", "FOSTER_SIGNAL_TARGET=group  (default)", "FOSTER_LEFTOVERS=kill  (default)",
		"FOSTER_SUCCESS_EXIT_CODES=0  (default)", "FOSTER_LOG_FORMAT=auto  (default)", "FOSTER_REPORT=  (default)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no line %q", want)
		}
	}
	if len(got) != 1+len(Settings()) {
		t.Errorf("%d lines for %d settings", len(got), len(Settings()))
	}
}

func TestTheCheckHidesSecrets(t *testing.T) {
	for _, c := range [][2]string{
		{"app --password hunter2 --user me", "app --password *** --user me"},
		{"app --db-password=hunter2", "app --db-password=***"},
		{"env API_TOKEN=hunter2 app", "env API_TOKEN=*** app"},
		{"app -secret hunter2", "app -secret ***"},
		{"app --api-key hunter2 --api_key=hunter2 --APIKEY=hunter2", "app --api-key *** --api_key=*** --APIKEY=***"},
		{"app --token", "app --token"},
		{"app password", "app password"},
	} {
		args := strings.Fields(c[0])
		plan := load(t, append([]string{"--check", "--"}, args...), nil)
		first, _, _ := strings.Cut(plan.Describe(), "\n")
		if want := "command: " + quoted(strings.Fields(c[1])); first != want {
			t.Errorf("got %s, want %s", first, want)
		}
		if !slices.Equal(plan.line.Spec.Args, args) {
			t.Errorf("the command itself was changed: %q", plan.line.Spec.Args)
		}
	}
}

func TestTheCheckLeavesNoFileBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	load(t, []string{"--check", "--report", path, "true"}, nil)
	if _, err := os.Stat(path); err == nil {
		t.Error("the report was created")
	}
}
