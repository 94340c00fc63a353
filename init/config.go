// Package supervisor is foster's own: what is configured, what is run, and what
// is told of it afterwards. (The folder is init; a package of that name could
// not be imported without another.)
package supervisor

import (
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

// Prefix begins the name of every variable that foster reads. No command gets
// to see one.
const Prefix = "FOSTER_"

// Shared is what can be set for each command; without a command's name in the
// variable it is the default for all. The tags of this and the next structs are
// the one place where a setting is described: options, variables, --help and the
// README's tables come from them. An option is the variable's name in lower
// case, or opt; "-" is none.
type Shared struct {
	Timeout          Duration          `env:"TIMEOUT" envDefault:"0s" short:"t" arg:"DURATION" help:"stop after this run time; 0 is never"`
	GracePeriod      Duration          `env:"GRACE_PERIOD" envDefault:"10s" short:"g" arg:"DURATION" help:"from stop signal to SIGKILL; 0 is at once"`
	StopSignal       Signal            `env:"STOP_SIGNAL" envDefault:"TERM" arg:"SIGNAL" help:"what a stop sends first"`
	SignalTarget     exec.SignalTarget `env:"SIGNAL_TARGET" envDefault:"group" arg:"TARGET" help:"process, group or tree"`
	Leftovers        exec.Leftovers    `env:"LEFTOVERS" envDefault:"kill" arg:"POLICY" help:"kill, wait or leave"`
	SuccessExitCodes ExitCodes         `env:"SUCCESS_EXIT_CODES" envDefault:"0" arg:"CODES" help:"to report as 0, such as 143"`
	User             string            `env:"USER" arg:"USER" help:"name, uid, name:group or uid:gid"`
	WorkingDir       string            `env:"WORKING_DIR" arg:"DIR" help:"directory to run in"`
	Umask            Umask             `env:"UMASK" arg:"MASK" help:"file mode mask of the command, octal"`
}

// Config is what can be set for foster itself, and for all commands.
type Config struct {
	Shared
	PassFDs         FDs       `env:"PASS_FDS" arg:"FDS" help:"to pass on, such as 3,4"`
	Report          Report    `env:"REPORT" arg:"FILE" help:"or fd:N, gets one JSON line"`
	TerminationPath string    `env:"TERMINATION_MESSAGE_PATH" opt:"termination-message" arg:"FILE" help:"gets why the container ended"`
	LogLevel        LogLevel  `env:"LOG_LEVEL" envDefault:"warn" arg:"LEVEL" help:"debug, info, warn or error"`
	LogFormat       LogFormat `env:"LOG_FORMAT" envDefault:"auto" arg:"FORMAT" help:"text, json or auto"`
	Commands        Names     `env:"COMMANDS" opt:"-" help:"the commands, in start order"`
	ShutdownTimeout Duration  `env:"SHUTDOWN_TIMEOUT" envDefault:"25s" opt:"-" help:"after it all is killed"`
}

// sharedDefaults and defaults are what the tags say where nothing is set. PID 1
// starts before everything else, so what it knows already is not parsed.
var (
	sharedDefaults = Shared{
		GracePeriod: Duration(exec.DefaultGracePeriod), StopSignal: Signal(unix.SIGTERM), SuccessExitCodes: ExitCodes{0},
	}
	defaults = Config{
		Shared: sharedDefaults, LogLevel: LogLevel(slog.LevelWarn), LogFormat: "auto", ShutdownTimeout: Duration(25 * time.Second),
	}
)

// A Setting is one field of a configuration as a user sees it.
type Setting struct {
	Key      string // the variable without prefix and command
	Variable string // with the prefix
	Option   string // without dashes, or none
	Short    string // one letter, or none
	Arg      string // what stands for the value in --help
	Default  string
	Help     string
	field    []int
}

// unset reports whether text says that a setting without a default is to be as
// if it were not set: an image's ENV cannot be removed, only changed.
func (s Setting) unset(text string) bool {
	return s.Default == "" && (text == "none" || text == "unchanged")
}

// Settings returns the settings of Config in the order of the struct.
func Settings() []Setting { return settings(reflect.TypeFor[Config]()) }

// CommandSettings returns those of one command, which stand behind its name.
func CommandSettings() []Setting { return settings(reflect.TypeFor[Command]()) }

func settings(t reflect.Type) (list []Setting) {
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag
		if tag.Get("env") == "" {
			continue
		}
		s := Setting{
			Key: tag.Get("env"), Variable: Prefix + tag.Get("env"), Option: tag.Get("opt"), Short: tag.Get("short"),
			Arg: tag.Get("arg"), Default: tag.Get("envDefault"), Help: tag.Get("help"), field: f.Index,
		}
		switch s.Option {
		case "":
			s.Option = strings.ToLower(strings.ReplaceAll(s.Key, "_", "-"))
		case "-":
			s.Option = ""
		}
		list = append(list, s)
	}
	return list
}

// A value is what was given for a variable, and where.
type value struct {
	text   string
	source string // the variable, or the option that beats it
}

// parse turns values by variable into a Config or a Command. Everything wrong
// with them is added to the problems.
func parse[T any](values map[string]value, prefix string, problems *Problems) T {
	environment := make(map[string]string, len(values))
	for name, v := range values {
		environment[name] = v.text
	}
	c, err := env.ParseAsWithOptions[T](env.Options{Environment: environment, Prefix: prefix})
	var all env.AggregateError
	if errors.As(err, &all) {
		for _, err := range all.Errors {
			problems.add(explain[T](err, values, prefix))
		}
	} else if err != nil {
		problems.add(Problem{Text: err.Error()})
	}
	return c
}

// explain names the variable or option that a field's error came from.
func explain[T any](err error, values map[string]value, prefix string) Problem {
	var p env.ParseError
	if !errors.As(err, &p) {
		return Problem{Text: err.Error()}
	}
	field, _ := reflect.TypeFor[T]().FieldByName(p.Name)
	return Problem{Source: values[prefix+field.Tag.Get("env")].source, Text: p.Err.Error()}
}

// ours returns foster's variables, but for those that Kubernetes makes.
func ours(environ []string) map[string]string {
	found := make(map[string]string)
	for _, entry := range environ {
		if name, text, _ := strings.Cut(entry, "="); strings.HasPrefix(name, Prefix) && !injected(name) {
			found[name] = text
		}
	}
	return found
}

// injected reports whether Kubernetes makes the variable for a Service that is
// called foster, in the form that Docker links had.
func injected(name string) bool {
	rest := strings.TrimPrefix(name, Prefix)
	return rest == "SERVICE_HOST" || rest == "SERVICE_PORT" || strings.HasPrefix(rest, "SERVICE_PORT_") ||
		rest == "PORT" || strings.HasPrefix(rest, "PORT_")
}

// without returns the environment less foster's variables.
func without(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, Prefix) })
}
