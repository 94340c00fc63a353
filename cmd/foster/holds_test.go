package main

import (
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

// Where foster must hold: surroundings in which it is not told of processes, or cannot speak.

func TestAnotherUsersProcMayBeHidden(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.HidePid, w.Setup.UID = true, 1000
		for name, row := range map[string]func(*testing.T, nstest.World){"T03": t03, "T04": t04, "T05": t05, "S09": s09} {
			t.Run(name, func(t *testing.T) { row(t, w) })
		}
	})
}

// Nothing says then what is below a child, until the child has ended.
func TestWithoutProcTheTreeIsGoneAllTheSame(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.NoProc = true
		script := `(setsid sh -c "sleep 7071 & sleep 7071" &); sleep 9`
		w.Run(t, "-t", "300ms", "-g", "0", "--", "sh", "-c", script).Exits(124).Before(bound).Clean()
		w.Run(t, "--", "sh", "-c", "sleep 7071 & exit 7").Exits(7).Before(bound).Clean()
	})
}

func TestAnyOfTheThreeMayBeClosed(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"} {
			argv := []string{w.Foster(t), "-t", "300ms", "-g", "0", "--", "sh", "-c", "sleep 7071 & setsid sleep 7071 & sleep 9"}
			w := w
			w.Program = []string{"/bin/sh", "-c", `exec "$@" ` + closed, "sh"}
			o := w.Run(t, argv...).Exits(124).Before(soon)
			for _, p := range o.Left {
				t.Errorf("%s: left behind: %v", closed, p)
			}
		}
	})
}
