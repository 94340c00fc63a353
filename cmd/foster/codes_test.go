package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestE01_EveryExitCodeAndEverySignalComesThrough(t *testing.T) {
	t.Parallel()
	every := "-every=1"
	if nstest.Race {
		every = "-every=9"
	}
	t.Run("subreaper", func(t *testing.T) {
		t.Parallel()
		w := nstest.Subreaper()
		w.Program = []string{w.Helper(t), "codes", every, w.Foster(t)}
		wants(t, w.Run(t))
	})
	t.Run("pid1", func(t *testing.T) {
		t.Parallel()
		w := nstest.Subreaper()
		w.Program = []string{w.Helper(t), "codes", every, "-pid1", w.Helper(t), "ns", "{}", w.Foster(t)}
		wants(t, w.Run(t))
	})
}

// wants a program that runs foster many times to have found nothing wrong, and nothing to be left of all the runs.
func wants(t *testing.T, o *nstest.Outcome) {
	t.Helper()
	if o.Exits(0); len(o.Left) != 0 || !o.EOF {
		t.Errorf("left behind: %v, EOF %v", o.Left, o.EOF)
	}
}

func TestE02_NoStatusIsLostInARainOfOrphans(t *testing.T) {
	for quarter := range 4 {
		t.Run(fmt.Sprint(quarter), func(t *testing.T) {
			t.Parallel()
			w := nstest.Subreaper()
			w.Program = []string{w.Helper(t), "downpour", fmt.Sprint(nstest.Rounds(500)), w.Foster(t)}
			wants(t, w.Run(t))
		})
	}
}

func TestE03_ACommandThatCannotRunIsNamedWithTheCause(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo no shebang\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		code    int
		cause   string
	}{
		{"/nope", 127, "no such file"},
		{"no-such-command", 127, "no such file"},
		{"/etc/passwd", 126, "permission denied"},
		{script, 126, "exec format error"},
		{dir, 126, "is a directory"},
	} {
		t.Run(filepath.Base(c.command), func(t *testing.T) {
			in(t, namespaces(), func(t *testing.T, w nstest.World) {
				o := w.Run(t, "--", c.command).Exits(c.code).Warns("foster: cannot", c.command, c.cause)
				if o.Stdout != "" || o.Report().Reason != "StartError" {
					t.Errorf("not a start error:\n%s", o)
				}
			})
		})
	}
}
