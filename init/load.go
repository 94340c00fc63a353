package supervisor

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

// A Plan is a valid configuration, ready to be run.
type Plan struct {
	Config  Config
	Check   bool // print it, run nothing
	Spec    exec.Spec
	sources map[string]value
}

// Load reads the command line, without the program's name, and the environment.
// The error is ErrHelp, ErrVersion, or Problems with everything that is wrong.
func Load(args, environ []string) (*Plan, error) {
	var problems Problems
	values := fromEnvironment(environ, &problems)
	plan := &Plan{sources: values}
	rest, err := plan.options(args, values, &problems)
	if err != nil {
		return nil, err
	}
	plan.Config = parse(values, &problems)
	plan.Spec = exec.Spec{
		Args: rest, Env: without(environ), Dir: plan.Config.WorkingDir, Umask: plan.Config.Umask.Bits,
		Timeout: time.Duration(plan.Config.Timeout), GracePeriod: time.Duration(plan.Config.GracePeriod),
		StopSignal: unix.Signal(plan.Config.StopSignal), SignalTarget: plan.Config.SignalTarget,
		Leftovers: plan.Config.Leftovers, Attempt: 1,
	}
	plan.validate(&problems)
	return plan, problems.err()
}

// options puts what the command line says over the variables, and returns what
// follows the options: the command.
func (plan *Plan) options(args []string, values map[string]value, problems *Problems) ([]string, error) {
	if len(args) > 1 && args[0] == "--" && args[1] != "" {
		return args[1:], nil // as in most images: nothing to parse before the command may start
	}
	set := flag.NewFlagSet("foster", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	var help, version bool
	var names []string
	for _, s := range Settings() {
		for _, name := range []string{s.Option, s.Short} {
			if name != "" {
				set.Var(option{name, s.Variable, values, problems}, name, "")
				names = append(names, dashed(name))
			}
		}
	}
	set.BoolVar(&plan.Check, "check", false, "")
	set.BoolVar(&help, "help", false, "")
	set.BoolVar(&help, "h", false, "")
	set.BoolVar(&version, "version", false, "")
	if err := set.Parse(args); err != nil {
		problems.add(badOption(err, append(names, "--check", "--help", "--version")))
		return nil, nil
	}
	switch {
	case help:
		return nil, ErrHelp
	case version:
		return nil, ErrVersion
	case set.NArg() == 0 || set.Arg(0) == "":
		problems.add(Problem{Text: "no command to run", Hint: "foster [options] [--] COMMAND [ARG...]"})
	}
	return set.Args(), nil
}

// option stores what an option of the command line says where the variable's
// value would be, to be parsed with all others.
type option struct {
	name, variable string
	values         map[string]value
	problems       *Problems
}

func (o option) String() string { return "" }

func (o option) Set(text string) error {
	source := dashed(o.name)
	switch before, twice := o.values[o.variable]; {
	case twice && before.source != o.variable:
		o.problems.add(Problem{Source: source, Text: fmt.Sprintf("given twice, %q and %q", before.text, text), Hint: "give it once"})
	case text == "":
		o.problems.add(Problem{Source: source, Text: "empty value", Hint: "give it a value or leave the option out"})
	}
	if text == "" {
		delete(o.values, o.variable)
		return nil
	}
	o.values[o.variable] = value{text, source}
	return nil
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// badOption turns the flag package's sentence into one of ours.
func badOption(err error, names []string) Problem {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		name = dashed(name)
		// -t2, as other programs take it, comes as --t2.
		if digits := strings.TrimLeft(name, "-abcdefghijklmnopqrstuvwxyz"); len(digits) == len(name)-3 && slices.Contains(names, name[1:3]) {
			return Problem{Source: name[1:], Text: "unknown option", Hint: "write " + name[1:3] + " " + digits}
		}
		return Problem{Source: name, Text: "unknown option", Hint: didYouMean(name, names)}
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return Problem{Source: dashed(name), Text: "needs a value", Hint: "see --help"}
	}
	return Problem{Text: err.Error(), Hint: "see --help"}
}

// validate checks what can be checked before anything is started.
func (plan *Plan) validate(problems *Problems) {
	plan.resolveUser(problems)
	if dir := plan.Config.WorkingDir; dir != "" {
		if err := directory(dir); err != nil {
			problems.add(Problem{Source: plan.source("WORKING_DIR"), Text: fmt.Sprintf("cannot use %q: %v", dir, err), Hint: "name a directory that exists"})
		}
	}
	for _, fd := range plan.Config.PassFDs {
		plan.validateFD("PASS_FDS", fd, problems)
	}
	if fd := plan.Config.Report.FD; fd != 0 {
		plan.validateFD("REPORT", fd, problems)
	}
	if err := plan.openReport(); err != nil {
		problems.add(Problem{Source: plan.source("REPORT"), Text: err.Error(), Hint: "name a file that can be written, or fd:N"})
	}
}

// validateFD checks that foster was started with the descriptor. One that is
// close-on-exec cannot have been inherited: it is foster's own.
func (plan *Plan) validateFD(key string, fd int, problems *Problems) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		problems.add(Problem{Source: plan.source(key), Text: fmt.Sprintf("descriptor %d is not open", fd), Hint: "open it before foster starts"})
	}
}

// source returns where the value of a key came from.
func (plan *Plan) source(key string) string { return plan.sources[Prefix+key].source }

func directory(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return nil
}

// Usage returns the text of --help.
func Usage() string {
	var b bytes.Buffer
	b.WriteString("Usage: foster [options] [--] COMMAND [ARG...]\n" +
		"Runs COMMAND and ends when nothing that it started is left.\n")
	for _, s := range Settings() {
		name := "    --" + s.Option
		if s.Short != "" {
			name = "-" + s.Short + ", --" + s.Option
		}
		text := s.Help
		if s.Default != "" {
			text += " (" + s.Default + ")"
		}
		fmt.Fprintf(&b, "  %-30s %s\n", name+" "+s.Arg, text)
	}
	b.WriteString("      --check                    validate, print what is in effect, run nothing\n" +
		"      --version, --help\n" +
		"Options are variables too: --umask is " + Prefix + "UMASK; the option wins.\n" +
		"Exit codes: the command's own; 128+n killed by signal n; 124 deadline passed;\n" +
		"125 foster failed; 126 COMMAND cannot be executed; 127 COMMAND not found.\n")
	return b.String()
}

// Describe returns the configuration in effect, for --check: the command, and
// each setting as the variable that would make it.
func (plan *Plan) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "command: %s\n", quoted(redacted(plan.Spec.Args)))
	for _, s := range Settings() {
		fmt.Fprintf(&b, "%s=%s", s.Variable, plan.Config.text(s))
		if v, set := plan.sources[s.Variable]; set && v.source != s.Variable {
			fmt.Fprintf(&b, "  (from %s)", v.source)
		} else if !set {
			b.WriteString("  (default)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprintf("%q", a)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// redacted hides what an argument gives to a name that sounds secret, whether
// as --name=value or as the argument after --name.
func redacted(args []string) []string {
	const hidden = "***"
	out := append([]string(nil), args...)
	for i, a := range out {
		name, _, assigned := strings.Cut(a, "=")
		switch {
		case !secret(name):
		case assigned:
			out[i] = name + "=" + hidden
		case strings.HasPrefix(a, "-") && i+1 < len(out):
			out[i+1] = hidden
		}
	}
	return out
}

func secret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"password", "passwd", "secret", "token", "credential", "apikey", "api-key", "api_key"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// IsProblem returns the problems that err consists of.
func IsProblem(err error) (Problems, bool) {
	var p Problems
	return p, errors.As(err, &p)
}
