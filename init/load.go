package supervisor

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Plan is a valid configuration, ready to be run.
type Plan struct {
	Config   Config
	Check    bool // print it, run nothing
	noEnv    bool // no variable is read
	commands []*command
	line     *command         // the one of the command line, nil if there is none
	sources  map[string]value // what was set for foster itself and for all, by variable
}

// Load reads the command line, without the program's name, and the environment.
// The error is ErrHelp, ErrVersion, or Problems with everything that is wrong.
func Load(args, environ []string) (*Plan, error) {
	var problems Problems
	plan := &Plan{Config: defaults, sources: make(map[string]value)}
	line, parsed, err := plan.options(args, &problems)
	if err != nil {
		return nil, err
	}
	given := ours(environ)
	if plan.noEnv {
		clear(given)
	}
	if len(given) > 0 {
		plan.takeShared(given, &problems)
	}
	if len(plan.sources) > 0 { // a test holds that env finds the same where nothing is set
		maps.DeleteFunc(plan.sources, func(_ string, v value) bool { return v.text == "" })
		plan.Config = parse[Config](plan.sources, Prefix, &problems)
	}
	none := len(line) == 0 && len(plan.Config.Commands) == 0 && !problems.about(Prefix+"COMMANDS")
	if parsed && none || len(line) > 0 && line[0] == "" {
		problems.add(Problem{Text: "no command to run", Hint: "foster [options] [--] COMMAND [ARG...]"})
	}
	plan.collect(line, given, &problems)
	for _, c := range plan.commands {
		c.resolve(environ, &problems)
	}
	if plan.line != nil {
		plan.line.Spec.Args = line
	}
	if plan.alone() && !plan.line.hasOwn() {
		plan.line.Spec.Name = "" // it is called what it runs
	}
	plan.validate(&problems)
	return plan, problems.err()
}

// takeShared takes out of given what is set for foster itself and for all
// commands; an option beats it.
func (plan *Plan) takeShared(given map[string]string, problems *Problems) {
	for _, s := range Settings() {
		if _, set := plan.sources[s.Variable]; set {
			delete(given, s.Variable)
		} else {
			take(given, s.Variable, s, plan.sources, problems)
		}
	}
}

// collect finds the commands and hands each its variables. What is left then is
// nobody's.
func (plan *Plan) collect(line []string, given map[string]string, problems *Problems) {
	for _, name := range plan.Config.Commands {
		plan.commands = append(plan.commands, &command{Name: name})
	}
	if len(line) > 0 || len(plan.commands) == 0 { // none at all is a problem already
		plan.line = &command{Name: mainName, onLine: true}
		plan.commands = append(plan.commands, plan.line)
	}
	if plan.alone() && len(given) == 0 && len(plan.sources) == 0 {
		return
	}
	misnamed := problems.about(Prefix + "COMMANDS")
	plan.nameProblems(problems)
	known := variables(Settings(), Prefix)
	for _, c := range plan.commands {
		c.collect(given, plan.sources, problems)
		known = append(known, variables(CommandSettings(), prefixOf(c.Name))...)
	}
	if misnamed {
		return // nobody knows then whose variables there are
	}
	for name := range given {
		problems.add(Problem{Source: name, Text: "unknown variable", Hint: didYouMean(name, known)})
	}
}

func variables(list []Setting, prefix string) (names []string) {
	for _, s := range list {
		names = append(names, prefix+s.Key)
	}
	return names
}

// alone reports whether there is one command, that of the command line.
func (plan *Plan) alone() bool { return len(plan.commands) == 1 && plan.line != nil }

// options reads the options of the command line into sources, and returns what
// follows them: the command. parsed is false where they could not be told apart.
func (plan *Plan) options(args []string, problems *Problems) (line []string, parsed bool, err error) {
	if len(args) > 1 && args[0] == "--" && args[1] != "" {
		return args[1:], true, nil // as in most images: nothing to parse before the command may start
	}
	set := flag.NewFlagSet("foster", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	var help, version bool
	var names []string
	for _, s := range Settings() {
		for _, name := range []string{s.Option, s.Short} {
			if name != "" { // not every variable has an option
				set.Var(option{name, s, plan.sources, problems}, name, "")
				names = append(names, dashed(name))
			}
		}
	}
	set.BoolVar(&plan.Check, "check", false, "")
	set.BoolVar(&plan.noEnv, "no-env", false, "")
	set.BoolVar(&help, "help", false, "")
	set.BoolVar(&help, "h", false, "")
	set.BoolVar(&version, "version", false, "")
	if err := set.Parse(args); err != nil {
		problems.add(badOption(err, args, append(names, "--no-env", "--check", "--help", "--version")))
		return nil, false, nil
	}
	switch {
	case help:
		return nil, false, ErrHelp
	case version:
		return nil, false, ErrVersion
	}
	return set.Args(), true, nil
}

// option stores what an option of the command line says where the variable's
// value would be, to be parsed with all others; an empty text is no value, and
// not the variable's either.
type option struct {
	name     string
	setting  Setting
	values   map[string]value
	problems *Problems
}

func (o option) String() string { return "" }

func (o option) Set(text string) error {
	source := dashed(o.name)
	variable := o.setting.Variable
	switch before, twice := o.values[variable]; {
	case twice:
		o.problems.add(Problem{Source: source, Text: fmt.Sprintf("given twice, %q and %q", before.text, text), Hint: "give it once"})
	case text == "":
		o.problems.add(Problem{Source: source, Text: "empty value", Hint: "give it a value or leave the option out"})
	}
	if o.setting.unset(text) {
		text = ""
	}
	o.values[variable] = value{text, source}
	return nil
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// badOption turns the flag package's sentence into one of ours.
func badOption(err error, args, names []string) Problem {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		name = dashed(name)
		// -t2, as other programs take it, comes as --t2.
		if digits := strings.TrimLeft(name, "-abcdefghijklmnopqrstuvwxyz"); len(digits) == len(name)-3 && slices.Contains(names, name[1:3]) {
			return Problem{Source: name[1:], Text: "unknown option", Hint: "write " + name[1:3] + " " + digits}
		}
		if slices.ContainsFunc(args, func(a string) bool { return a == name[1:] || strings.HasPrefix(a, name[1:]+"=") }) {
			name = name[1:] // as it was written
		}
		return Problem{Source: name, Text: "unknown option", Hint: didYouMean(name, names)}
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return Problem{Source: dashed(name), Text: "needs a value", Hint: "see --help"}
	}
	return Problem{Text: err.Error(), Hint: "see --help"}
}

// validate checks what can be checked before anything is started, beside what
// each command has checked.
func (plan *Plan) validate(problems *Problems) {
	if !slices.ContainsFunc(plan.commands, func(c *command) bool { return c.clashes }) {
		plan.order(problems)
		plan.validateTypes(problems)
	}
	for _, fd := range plan.Config.PassFDs {
		plan.validateFD("PASS_FDS", fd, problems)
	}
	if fd := plan.Config.Report.FD; fd != 0 {
		plan.validateFD("REPORT", fd, problems)
	}
	if path := plan.Config.TerminationPath; path != "" {
		abs, err := plan.writable(path)
		if err != nil {
			problems.add(Problem{Source: plan.source("TERMINATION_MESSAGE_PATH"), Text: err.Error(), Hint: "name a file that can be written"})
		}
		plan.Config.TerminationPath = abs
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
		return
	}
	mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if key == "REPORT" && err == nil && mode&unix.O_ACCMODE == unix.O_RDONLY {
		problems.add(Problem{Source: plan.source(key), Text: fmt.Sprintf("descriptor %d is open for reading only", fd), Hint: "open it for writing"})
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
		if s.Option == "" {
			continue
		}
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
	b.WriteString("      --no-env                   read no variable, for exec probes\n" +
		"      --check                    validate, print what is in effect, run nothing\n" +
		"      --version, --help\n" +
		"Options are variables too: --umask is " + Prefix + "UMASK; the option wins.\n" +
		"Several commands: " + Prefix + "COMMANDS names them, " + Prefix + "<NAME>_COMMAND and others say how.\n" +
		"Exit codes: the command's own; 128+n killed by signal n; 124 deadline passed;\n" +
		"125 foster failed; 126 COMMAND cannot be executed; 127 COMMAND not found.\n")
	return b.String()
}

// Lookup returns the *exec.StartError of the first command whose program cannot
// be found or executed now, if there is one.
func (plan *Plan) Lookup() error {
	for _, c := range plan.commands {
		if _, err := c.Spec.Lookup(); err != nil {
			return err
		}
	}
	return nil
}

// Describe returns the configuration in effect, for --check: each command, and
// each setting as the variable that would make it.
func (plan *Plan) Describe() string {
	var b strings.Builder
	if plan.alone() && !plan.line.hasOwn() {
		fmt.Fprintf(&b, "command: %s\n", quoted(redacted(plan.line.Spec.Args)))
	}
	describe(&b, reflect.ValueOf(plan.Config), Settings(), Prefix, plan.sources)
	if plan.alone() && !plan.line.hasOwn() {
		return b.String()
	}
	for _, c := range plan.commands {
		c.describe(&b)
	}
	return b.String()
}

// hasOwn reports whether a variable names the command.
func (c *command) hasOwn() bool {
	for name, v := range c.values {
		if v.source == name {
			return true
		}
	}
	return false
}

func (c *command) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\n# %s, a command of type %s: %s\n", c.Name, c.Command.Type, quoted(redacted(c.Spec.Args)))
	for _, n := range c.needs {
		fmt.Fprintf(b, "#   starts when %s is %s\n", n.on.Name, n.until)
	}
	describe(b, reflect.ValueOf(c.Command), CommandSettings(), prefixOf(c.Name), c.values)
	for _, name := range slices.Sorted(maps.Keys(c.values)) {
		if variable, is := strings.CutPrefix(name, prefixOf(c.Name)+envKey); is {
			text := c.values[name].text
			if secret(variable) && !strings.HasSuffix(variable, fileSuffix) {
				text = hidden
			}
			fmt.Fprintf(b, "%s=%s\n", name, text)
		}
	}
}

// describe prints the settings of a struct. A value that was set for all
// commands is said to come from there.
func describe(b *strings.Builder, of reflect.Value, list []Setting, prefix string, values map[string]value) {
	for _, s := range list {
		name := prefix + s.Key
		fmt.Fprintf(b, "%s=%v", name, of.FieldByIndex(s.field).Interface())
		if v, set := values[name]; set && v.source != name {
			fmt.Fprintf(b, "  (from %s)", v.source)
		} else if !set {
			b.WriteString("  (default)")
		}
		b.WriteByte('\n')
	}
}

func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprintf("%q", a)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

const hidden = "***"

// redacted hides what an argument gives to a name that sounds secret, whether
// as --name=value or as the argument after --name.
func redacted(args []string) []string {
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
