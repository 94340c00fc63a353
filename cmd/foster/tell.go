package main

// What a user is told, and how:
//
//   - A good run says nothing. What is said goes to standard error; only what
//     was asked for (--help, --version, --check) goes to standard output.
//   - An error is one line, "foster: cannot X: cause", that names the variable,
//     option or path and the value it found there.
//   - What to do about it is a second line, "hint: ...", where the error does
//     not say it already.
//   - Of a configuration everything that is wrong is said at once.
//
import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fosterinit/foster/exec"
	supervisor "github.com/fosterinit/foster/init"
	"github.com/fosterinit/foster/internal/fdio"
)

// A reader of stderr that has stopped reading must not keep foster from its
// deadline, so what it does not take soon is lost.
var (
	stdout = fdio.Writer{FD: 1, Wait: time.Minute}
	stderr = fdio.Writer{FD: 2, Wait: 100 * time.Millisecond}
)

// say answers a question and returns the exit code.
func say(text string) int {
	if _, err := stdout.Write([]byte(text)); err != nil {
		return fail(err)
	}
	return 0
}

// tell prints an error, and a hint where there is one.
func tell(err error) {
	text := "foster: " + err.Error() + "\n"
	var failed *exec.StartError
	if errors.As(err, &failed) && failed.Hint != "" {
		text += "hint: " + failed.Hint + "\n"
	}
	_, _ = stderr.Write([]byte(text))
}

func fail(err error) int {
	tell(err)
	return exec.CodeFailed
}

// check prints what is in effect, and whether there is such a command.
func check(plan *supervisor.Plan) int {
	if code := say(plan.Describe()); code != 0 {
		return code
	}
	var failed *exec.StartError
	if err := plan.Lookup(); errors.As(err, &failed) {
		tell(err)
		return failed.ExitCode
	}
	return 0
}

// misconfigured prints everything that is wrong, also to where kubectl shows it.
func misconfigured(plan *supervisor.Plan, err error) int {
	problems, ok := supervisor.IsProblem(err)
	if !ok {
		return fail(err)
	}
	var b strings.Builder
	for _, p := range problems {
		b.WriteString("foster: " + p.String() + "\n")
	}
	_, _ = stderr.Write([]byte(b.String()))
	path := ""
	if plan != nil {
		path = plan.Config.TerminationPath
	}
	_ = supervisor.WriteTermination(path, b.String()) // a help, not a must
	return exec.CodeFailed
}

func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return "foster " + v + " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
}
