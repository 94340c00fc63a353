// Package supervisor is foster's own: what is configured, what is run, and what
// is told of it afterwards. (The folder is init; a package of that name could
// not be imported without another.)
package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

// Prefix begins the name of every variable that foster reads. No command gets
// to see one.
const Prefix = "FOSTER_"

// Config is what can be set for one command. The tags are the one place where a
// setting is described: options, variables, --help and the README's table come
// from them. An option is the variable's name in lower case, or opt.
type Config struct {
	Timeout          Duration          `env:"TIMEOUT" envDefault:"0s" short:"t" arg:"DURATION" help:"stop after this run time; 0 is never"`
	GracePeriod      Duration          `env:"GRACE_PERIOD" envDefault:"10s" short:"g" arg:"DURATION" help:"from stop signal to SIGKILL; 0 is at once"`
	StopSignal       Signal            `env:"STOP_SIGNAL" envDefault:"TERM" arg:"SIGNAL" help:"what a stop sends first"`
	SignalTarget     exec.SignalTarget `env:"SIGNAL_TARGET" envDefault:"group" arg:"TARGET" help:"process, group or tree"`
	Leftovers        exec.Leftovers    `env:"LEFTOVERS" envDefault:"kill" arg:"POLICY" help:"kill, wait or leave"`
	SuccessExitCodes ExitCodes         `env:"SUCCESS_EXIT_CODES" envDefault:"0" arg:"CODES" help:"to report as 0, such as 143"`
	User             string            `env:"USER" arg:"USER" help:"name, uid, name:group or uid:gid"`
	WorkingDir       string            `env:"WORKING_DIR" arg:"DIR" help:"directory to run in"`
	Umask            Umask             `env:"UMASK" arg:"MASK" help:"file mode mask of the command, octal"`
	PassFDs          FDs               `env:"PASS_FDS" arg:"FDS" help:"to pass on, such as 3,4"`
	Report           Report            `env:"REPORT" arg:"FILE" help:"or fd:N, gets one JSON line"`
	TerminationPath  string            `env:"TERMINATION_MESSAGE_PATH" opt:"termination-message" arg:"FILE" help:"gets why the container ended"`
	LogLevel         LogLevel          `env:"LOG_LEVEL" envDefault:"warn" arg:"LEVEL" help:"debug, info, warn or error"`
	LogFormat        LogFormat         `env:"LOG_FORMAT" envDefault:"auto" arg:"FORMAT" help:"text, json or auto"`
}

// defaults is what the tags say where nothing is set. PID 1 starts before
// everything else, so what it knows already is not parsed.
var defaults = Config{
	GracePeriod: Duration(exec.DefaultGracePeriod), StopSignal: Signal(unix.SIGTERM), SuccessExitCodes: ExitCodes{0},
	LogLevel: LogLevel(slog.LevelWarn), LogFormat: "auto",
}

// A Setting is one field of Config as a user sees it.
type Setting struct {
	Variable string // with the prefix
	Option   string // without dashes
	Short    string // one letter, or none
	Arg      string // what stands for the value in --help
	Default  string
	Help     string
	field    int
}

// Settings returns the settings in the order of the struct.
func Settings() []Setting {
	t := reflect.TypeFor[Config]()
	list := make([]Setting, t.NumField())
	for i := range list {
		tag := t.Field(i).Tag
		s := Setting{
			Variable: Prefix + tag.Get("env"), Option: tag.Get("opt"), Short: tag.Get("short"),
			Arg: tag.Get("arg"), Default: tag.Get("envDefault"), Help: tag.Get("help"), field: i,
		}
		if s.Option == "" {
			s.Option = strings.ToLower(strings.ReplaceAll(tag.Get("env"), "_", "-"))
		}
		list[i] = s
	}
	return list
}

// A value is what was given for a variable, and where.
type value struct {
	text   string
	source string // the variable, or the option that beats it
}

// parse turns values by variable into a Config. Everything wrong with them is
// added to the problems.
func parse(values map[string]value, problems *Problems) Config {
	if len(values) == 0 {
		return defaults // a test holds that env finds the same
	}
	environment := make(map[string]string, len(values))
	for name, v := range values {
		environment[name] = v.text
	}
	c, err := env.ParseAsWithOptions[Config](env.Options{Environment: environment, Prefix: Prefix})
	var all env.AggregateError
	if errors.As(err, &all) {
		for _, err := range all.Errors {
			problems.add(explain(err, values))
		}
	} else if err != nil {
		problems.add(Problem{Text: err.Error()})
	}
	return c
}

// explain names the variable or option that a field's error came from.
func explain(err error, values map[string]value) Problem {
	var p env.ParseError
	if !errors.As(err, &p) {
		return Problem{Text: err.Error()}
	}
	field, _ := reflect.TypeFor[Config]().FieldByName(p.Name)
	return Problem{Source: values[Prefix+field.Tag.Get("env")].source, Text: p.Err.Error()}
}

// fromEnvironment collects foster's variables.
func fromEnvironment(environ []string, problems *Problems) map[string]value {
	values := make(map[string]value)
	var known []string
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, Prefix) || injected(name) {
			continue
		}
		if known == nil {
			known = variables()
		}
		switch {
		case !slices.Contains(known, name):
			problems.add(Problem{Source: name, Text: "unknown variable", Hint: didYouMean(name, known)})
		case text == "":
			problems.add(Problem{Source: name, Text: "empty value", Hint: "give it a value or remove the variable"})
		default:
			values[name] = value{text, name}
		}
	}
	return values
}

func variables() (names []string) {
	for _, s := range Settings() {
		names = append(names, s.Variable)
	}
	return names
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

// text returns the value of a setting as a variable would say it.
func (c *Config) text(s Setting) string {
	return fmt.Sprint(reflect.ValueOf(*c).Field(s.field).Interface())
}
