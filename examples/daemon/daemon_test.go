// Package daemon is an example of a program that forks into the background; there is nothing to import.
package daemon

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

func TestMain(m *testing.M) { os.Exit(nstest.Main(m)) }

const conf = "worker_processes 1; pid nginx.pid; events {} "

func TestADaemonInTheBackgroundIsWaitedForAndStopped(t *testing.T) {
	nginx := nstest.NeedProgram(t, "nginx")
	for _, w := range []nstest.World{nstest.Subreaper(), nstest.PID1()} {
		t.Run(w.Name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/nginx.conf", []byte(conf), 0o644); err != nil {
				t.Fatal(err)
			}
			r := w.Start(t, "--leftovers", "wait", "--", nginx, "-p", dir, "-e", dir+"/error.log", "-c", dir+"/nginx.conf")
			r.Until("the daemon and its worker, and not what started them", func(all []wire.Process) bool {
				return has(all, "nginx: master") && has(all, "nginx: worker") && !has(all, nginx)
			})
			r.Signal(unix.SIGTERM).Wait().Exits(0).Ends("Stopped").Clean()
		})
	}
}

func has(all []wire.Process, args string) bool {
	return slices.ContainsFunc(all, func(p wire.Process) bool { return strings.HasPrefix(p.Args, args) })
}
