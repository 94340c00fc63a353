package supervisor

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

// Command is what can be set for one of several commands, in variables that
// begin with its name.
type Command struct {
	Shared
	Argv                  Argv          `env:"COMMAND" help:"the program and its arguments: shell words, or a JSON array"`
	Type                  Type          `env:"TYPE" envDefault:"main" help:"init runs to its end before the rest, sidecar starts before main and ends after it"`
	RestartPolicy         RestartPolicy `env:"RESTART_POLICY" help:"Always, OnFailure or Never; Always for a sidecar, Never for others"`
	Backoff               Duration      `env:"BACKOFF" envDefault:"1s" help:"wait before the first restart, doubled for each further one"`
	BackoffMax            Duration      `env:"BACKOFF_MAX" envDefault:"5m" help:"the longest wait"`
	BackoffReset          Duration      `env:"BACKOFF_RESET" envDefault:"10m" help:"a run that lasted so long starts the waits anew"`
	MaxRestarts           Count         `env:"MAX_RESTARTS" envDefault:"0" help:"after so many the command has failed; 0 is no limit"`
	DependsOn             Dependencies  `env:"DEPENDS_ON" help:"what is to be started, ready or completed before"`
	ReadyExec             Argv          `env:"READY_EXEC" help:"ready when this command ends with 0"`
	ReadyTCP              Address       `env:"READY_TCP" help:"ready when this port accepts"`
	ReadyFD               FD            `env:"READY_FD" help:"ready when it writes a newline to this descriptor"`
	ReadyPeriod           Duration      `env:"READY_PERIOD" envDefault:"1s" help:"between two attempts"`
	ReadyTimeout          Duration      `env:"READY_TIMEOUT" envDefault:"1s" help:"for one attempt"`
	ReadyFailureThreshold Count         `env:"READY_FAILURE_THRESHOLD" envDefault:"0" help:"after so many failed attempts the command is stopped; 0 is no limit"`
	PreStop               Argv          `env:"PRE_STOP" help:"runs before the stop signal, within the grace period"`
	InheritEnv            Bool          `env:"INHERIT_ENV" envDefault:"true" help:"false: the command sees its ENV_ variables only"`
	Stdin                 Stdin         `env:"STDIN" envDefault:"null" help:"null, or inherit for one of the commands"`
	Log                   LogMode       `env:"LOG" envDefault:"inherit" help:"inherit, prefix, json or null"`
	LimitNofile           Limit         `env:"LIMIT_NOFILE" help:"open files: N, SOFT:HARD or unlimited"`
	LimitNproc            Limit         `env:"LIMIT_NPROC" help:"processes of its user"`
	LimitCore             Limit         `env:"LIMIT_CORE" help:"bytes of a core file"`
	OOMScoreAdj           OOMScoreAdj   `env:"OOM_SCORE_ADJ" help:"-1000 to 1000, who is killed first when memory is short"`
	Nice                  Nice          `env:"NICE" help:"-20 to 19, the higher the later it runs"`
	ForwardSignals        Signals       `env:"FORWARD_SIGNALS" help:"signals to pass on, such as HUP,USR1"`
}

// commandDefaults is what the tags say where nothing is set.
var commandDefaults = Command{
	Shared: sharedDefaults, Type: TypeMain, RestartPolicy: "", Backoff: Duration(time.Second),
	BackoffMax: Duration(5 * time.Minute), BackoffReset: Duration(10 * time.Minute),
	ReadyPeriod: Duration(time.Second), ReadyTimeout: Duration(time.Second),
	InheritEnv: true, Stdin: StdinNull, Log: LogInherit,
}

// mainName is what the command of the command line is called.
const mainName = "main"

// ENV_X is the one key with a name in it.
const (
	envKey     = "ENV_"
	fileSuffix = "_FILE"
)

// A command is one of those that are configured, and how it is to be run.
type command struct {
	Name    string
	onLine  bool // it is the command line's
	Command Command
	Spec    exec.Spec
	needs   []need           // what is to be so before it starts, DEPENDS_ON among it
	values  map[string]value // what was set for it, by variable
	clashes bool             // its name does, so nobody knows what is its own
}

// prefixOf is how the variables of a command begin.
func prefixOf(name string) string { return Prefix + keyOf(name) + "_" }

// keyOf is a command's name as it is written in variables.
func keyOf(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// isSet reports whether the key has a value of the command's own.
func (c *command) isSet(key string) bool {
	_, set := c.values[prefixOf(c.Name)+key]
	return set
}

// source is the variable or option that the value of a key came from.
func (c *command) source(key string) string {
	name := prefixOf(c.Name) + key
	if v, set := c.values[name]; set {
		return v.source
	}
	return name
}

// collect takes the command's own variables out of given, and what is set for
// all commands in shared.
func (c *command) collect(given map[string]string, shared map[string]value, problems *Problems) {
	c.values = make(map[string]value)
	prefix := prefixOf(c.Name)
	for _, s := range CommandSettings() {
		if v, set := shared[s.Variable]; set && sharedKeys()[s.Key] {
			c.values[prefix+s.Key] = v
		}
		take(given, prefix+s.Key, s, c.values, problems)
	}
	for name, text := range given {
		if variable, is := strings.CutPrefix(name, prefix+envKey); is && variable != "" {
			delete(given, name)
			c.values[name] = value{text, name}
		}
	}
}

// take moves a variable from given to values, if it is there.
func take(given map[string]string, name string, s Setting, values map[string]value, problems *Problems) {
	text, set := given[name]
	delete(given, name)
	switch {
	case !set:
	case text == "":
		problems.add(Problem{Source: name, Text: "empty value", Hint: "give it a value or remove the variable"})
	case s.unset(text):
		delete(values, name)
	default:
		values[name] = value{text, name}
	}
}

func sharedKeys() map[string]bool {
	keys := make(map[string]bool)
	for _, s := range settings(reflect.TypeFor[Shared]()) {
		keys[s.Key] = true
	}
	return keys
}

// resolve makes the Spec of what the variables say.
func (c *command) resolve(environ []string, problems *Problems) {
	c.Command = commandDefaults
	if len(c.values) > 0 {
		c.Command = parse[Command](c.values, prefixOf(c.Name), problems)
	}
	s := &c.Command
	if s.RestartPolicy == "" {
		s.RestartPolicy = RestartNever
		if s.Type == TypeSidecar {
			s.RestartPolicy = RestartAlways
		}
	}
	c.Spec = exec.Spec{
		Name: c.Name, Args: s.Argv, Dir: s.WorkingDir, Umask: s.Umask.Bits,
		Timeout: time.Duration(s.Timeout), GracePeriod: time.Duration(s.GracePeriod),
		StopSignal: unix.Signal(s.StopSignal), SignalTarget: s.SignalTarget, Leftovers: s.Leftovers, Attempt: 1,
		Limits: s.limits(), OOMScoreAdj: s.OOMScoreAdj.N, Nice: s.Nice.N,
	}
	if s.InheritEnv {
		c.Spec.Env = without(environ)
	} else {
		c.Spec.Env = []string{}
	}
	c.resolveUser(problems)
	c.addEnvironment(problems)
	c.validate(problems)
}

func (s *Command) limits() (list []exec.Limit) {
	for resource, l := range map[int]Limit{unix.RLIMIT_NOFILE: s.LimitNofile, unix.RLIMIT_NPROC: s.LimitNproc, unix.RLIMIT_CORE: s.LimitCore} {
		if l.Set {
			list = append(list, exec.Limit{Resource: resource, Soft: l.Soft, Hard: l.Hard})
		}
	}
	return list
}

// addEnvironment adds ENV_X and ENV_X_FILE.
func (c *command) addEnvironment(problems *Problems) {
	var names []string
	for name := range c.values {
		if strings.HasPrefix(name, prefixOf(c.Name)+envKey) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		variable := strings.TrimPrefix(name, prefixOf(c.Name)+envKey)
		text := c.values[name].text
		if of, is := strings.CutSuffix(variable, fileSuffix); is && of != "" {
			if _, both := c.values[strings.TrimSuffix(name, fileSuffix)]; both {
				problems.add(Problem{Source: name, Text: fmt.Sprintf("%s%s is set as well", envKey, of), Hint: "set one of the two"})
				continue
			}
			secret, err := readSecret(text)
			if err != nil {
				problems.add(Problem{Source: name, Text: fmt.Sprintf("cannot use %q: %v", text, err), Hint: "name a file that foster can read"})
				continue
			}
			variable, text = of, secret
		}
		c.Spec.Env = setenv(c.Spec.Env, variable+"="+text)
	}
}

// secretMax is what the kernel takes as one variable (MAX_ARG_STRLEN), in bytes.
const secretMax = 128<<10 - 1

// readSecret returns what a file holds, less one newline at its end.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err.(*os.PathError).Err
	}
	defer f.Close()
	text := make([]byte, secretMax+1)
	n := 0
	for n < len(text) {
		m, err := f.Read(text[n:])
		n += m
		if err != nil || m == 0 {
			break
		}
	}
	switch {
	case n > secretMax:
		return "", fmt.Errorf("longer than the %d bytes that a variable may have", secretMax)
	case slices.Contains(text[:n], 0):
		return "", fmt.Errorf("it has a NUL byte, which no variable can hold")
	}
	return strings.TrimSuffix(string(text[:n]), "\n"), nil
}

// validate checks what can be checked before anything is started.
func (c *command) validate(problems *Problems) {
	s := &c.Command
	if len(s.Argv) == 0 && !c.clashes && !c.onLine {
		problems.add(Problem{Source: prefixOf(c.Name) + "COMMAND", Text: "not set", Hint: "say what " + c.Name + " is to run"})
	}
	if dir := s.WorkingDir; dir != "" {
		if err := directory(dir); err != nil {
			problems.add(Problem{Source: c.source("WORKING_DIR"), Text: fmt.Sprintf("cannot use %q: %v", dir, err), Hint: "name a directory that exists"})
		}
	}
	if s.Type == TypeInit && s.RestartPolicy == RestartAlways {
		problems.add(Problem{Source: c.source("RESTART_POLICY"), Text: "an init command has to complete, so it cannot be restarted always", Hint: "write OnFailure, or make it a sidecar"})
	}
	checks := 0
	for _, set := range []bool{len(s.ReadyExec) > 0, s.ReadyTCP.IsValid(), s.ReadyFD != 0} {
		if set {
			checks++
		}
	}
	if checks > 1 {
		problems.add(Problem{Source: prefixOf(c.Name) + "READY_…", Text: "more than one way to show that it is ready", Hint: "set one of READY_EXEC, READY_TCP and READY_FD"})
	}
}

// supervised reports whether the command needs more than one run in this
// process can give: a supervisor, and a keeper.
func (c *command) supervised() bool {
	s := &c.Command
	return s.Type != TypeMain || s.RestartPolicy != RestartNever || s.hasReadiness() || len(s.PreStop) > 0 || s.Log != LogInherit
}

func (s *Command) hasReadiness() bool {
	return len(s.ReadyExec) > 0 || s.ReadyTCP.IsValid() || s.ReadyFD != 0
}
