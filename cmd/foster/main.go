// Foster is PID 1 for containers: it runs a command and ends when nothing that
// the command started is left.

// Neither is of use to a program with one P, and both are read at every start.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main

import (
	"errors"
	"log/slog"
	"os"

	"github.com/fosterinit/foster/exec"
	supervisor "github.com/fosterinit/foster/init"
)

func main() { os.Exit(run(os.Args[1:], os.Environ())) }

func run(args, environ []string) int {
	// First of all: before, the runtime ends the program on SIGTERM.
	if err := exec.CatchSignals(); err != nil {
		return fail(err)
	}
	plan, err := supervisor.Load(args, environ)
	switch {
	case errors.Is(err, supervisor.ErrHelp):
		return say(supervisor.Usage())
	case errors.Is(err, supervisor.ErrVersion):
		return say(version())
	case err != nil:
		return misconfigured(plan, err)
	case plan.Check:
		return check(plan)
	}
	code, err := plan.Run(newLogger(slog.Level(plan.Config.LogLevel), plan.Config.LogFormat), paint)
	if err != nil {
		tell(err)
	}
	return code
}
