package nstest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Marked kills, when the test ends, whatever a failure of it has left with mark; no other process may carry that.
func Marked(t testing.TB, mark string) {
	t.Cleanup(func() {
		for _, pid := range Holders(t, mark) {
			end(pid, mark)
		}
	})
}

// end kills pid if it holds mark: looked at again through a pidfd, so that the signal never reaches a successor.
func end(pid int, mark string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if Holds(pid, mark) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// Holders are the processes of the machine, those of containers among them, that Holds reports.
func Holders(t testing.TB, mark string) (found []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() && Holds(pid, mark) {
			found = append(found, pid)
		}
	}
	return found
}

// Holds says whether the process has mark in its arguments or its environment.
func Holds(pid int, mark string) bool {
	for _, file := range []string{"cmdline", "environ"} {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
		if bytes.Contains(text, []byte(mark)) {
			return true
		}
	}
	return false
}

// Childless is the exit code of a TestMain: code, or 1 with a word of it where the test binary still has a child, if
// only a zombie.
func Childless(code int) int {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		if text, _ := os.ReadFile(list); len(text) > 0 {
			fmt.Fprintf(os.Stderr, "children left, zombies counted: %s\n", text)
			code = 1
		}
	}
	return code
}

// UntilProven calls try with a longer deadline each time, in seconds, for as long as the machine is too busy for the
// command to get anywhere before it.
func UntilProven(t testing.TB, try func(seconds float64) (proven bool)) {
	t.Helper()
	for seconds := 2.0; seconds < Patience.Seconds(); seconds *= 2 {
		if try(seconds) {
			return
		}
		t.Logf("the command got nowhere in %v s, which proves nothing", seconds)
	}
	t.Error("the command never got anywhere before its deadline")
}
