package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// pipe is a pipe whose writing end goes to foster.
func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

func TestL03_AReaderThatGoesAwayIsTheCommandsAffair(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		read, write := pipe(t)
		w.Stdout = write
		r := w.Start(t, "--", "sh", "-c", "exec yes")
		_ = write.Close()
		if _, err := io.ReadFull(read, make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		// The reader stops: yes fills the pipe and blocks, and foster has nothing to do.
		idle(t, r.Pid())
		_ = read.Close()
		r.Wait().Exits(128 + int(unix.SIGPIPE)).Clean().Ends("Error").Silent()
	})
}

func TestL03_FosterOutlivesTheReadersOfItsOwnMessages(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		read, write := pipe(t)
		_ = read.Close()
		w.Stdout, w.Stderr = write, write
		w.Run(t, "--log-level", "debug", "--", "sh", "-c", "sleep 0.1; exit 5").Exits(5).Clean()
	})
}

// The pipe belongs to root and its mode is 0600: it can be written by who holds it, and not be opened by path.
func TestL05_APipeOfRootsIsWrittenByAnotherUser(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.UID = 1000
		o := w.Run(t, "--log-level", "info", "--", "sh", "-c", "id -u; echo hi; echo oops >&2")
		o.Exits(0).Prints("1000\nhi\n").Warns("oops").Clean()
	})
	in(t, containers(), func(t *testing.T, w nstest.World) {
		w.Docker = []string{"--user", "1000"}
		o := w.Run(t, "--log-level", "info", "--", "sh", "-c", "echo hi; echo oops >&2")
		o.Exits(0).Prints("hi\n").Warns("oops").Clean()
	})
}

func TestL05_ACommandOfAnotherUserWritesRootsPipe(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		o := w.Run(t, "--user", "1000:1000", "--", "sh", "-c", "id -u; echo hi").Exits(0).Clean()
		if got := strings.TrimSpace(o.Stdout); got != "1000\nhi" {
			t.Errorf("printed %q", got)
		}
	})
}
