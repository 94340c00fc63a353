// Command helper plays every program that the end-to-end tests need besides foster: the init of a PID namespace, the
// launcher that makes the surroundings hostile, comets and storms, a tracer, a parent that never waits.
//
// It is a program of its own, not the test binary under another name, because the same file has to run in an image
// built FROM scratch (static), inside a pids limit (few threads, so no race detector) and some thousand times a test
// run (a start costs 2 ms, the test binary's 20).
package main

import (
	"fmt"
	"os"
	"runtime"
)

// The main goroutine stays on the main thread: signal masks, credentials and seccomp filters belong to a thread, and
// the exec that hands them on must come from the same one.
func init() { runtime.LockOSThread() }

// A role's error ends the helper with exit code 99, which no test expects.
var roles = map[string]func(args []string) error{
	"ns":         namespace,
	"launch":     launch,
	"comet":      comet,
	"storm":      storm,
	"fill":       fill,
	"crowd":      crowd,
	"die":        die,
	"exit":       exit,
	"codes":      codes,
	"strike":     strike,
	"main-exits": mainExits,
	"slow-stop":  slowStop,
	"bystander":  bystander,
	"downpour":   downpour,
	"recur":      recur,
	"trace":      trace,
	"traceme":    traceMe,
	"move-group": moveGroup,
	"neglect":    neglect,
	"intrude":    intrude,
	"eat":        eat,
}

func main() {
	if len(os.Args) < 2 || roles[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "helper: no such role:", os.Args[1:])
		os.Exit(99)
	}
	if err := roles[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "helper %s: %v\n", os.Args[1], err)
		os.Exit(99)
	}
}
