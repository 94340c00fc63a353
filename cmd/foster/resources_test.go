package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestX10_AnOutOfMemoryKillIsNamed(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		message := filepath.Join(t.TempDir(), "message")
		if err := os.WriteFile(message, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if w.IsContainer() {
			// As Kubernetes mounts it; foster as PID 1 writes it unasked.
			w.Docker = []string{"--memory", "64m", "--volume", message + ":/dev/termination-log"}
		} else {
			w.Setup.Cgroups = []string{nstest.MemoryCgroup(t, 128<<20)}
			w.Env = []string{"FOSTER_TERMINATION_MESSAGE_PATH=" + message}
		}
		o := w.Run(t, "--", w.Helper(t), "eat")
		outOfMemory(t, o, message)
		if o.OOMKilled != w.IsContainer() {
			t.Errorf("the engine says OOMKilled: %v", o.OOMKilled)
		}
	})
}

func outOfMemory(t *testing.T, o *nstest.Outcome, message string) {
	t.Helper()
	o.Exits(137).Clean().Ends("OOMKilled")
	if text, err := os.ReadFile(message); err != nil || !strings.Contains(string(text), "OOMKilled") {
		t.Errorf("termination message %q, %v", text, err)
	}
}

// ls has the directory it reads open as 3, the first that is free. 9 is a file on the file system.
func TestX12_DescriptorsAndDirectoriesAreNotHeld(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.Fds, w.Setup.Busy = []int{5, 42, 300}, t.TempDir()
		script := `ls /proc/self/fd; pwd; cd /; umount "$1" && echo unmounted; sleep inf`
		r := w.Start(t, "--", "sh", "-c", script, "sh", w.Setup.Busy).Expect("unmounted")
		if want := "0\n1\n2\n3\n" + w.Setup.Busy + "\nunmounted\n"; r.Output() != want {
			t.Errorf("printed %q, want %q", r.Output(), want)
		}
		r.Signal(unix.SIGTERM).Wait().Exits(143).Clean().Silent()
	})
}

func TestX12_DescriptorsThatAreNamedArePassedOn(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.Fds = []int{5, 42, 43}
		o := w.Run(t, "--pass-fds", "5,42", "--", "ls", "/proc/self/fd").Exits(0)
		if o.Stdout != "0\n1\n2\n3\n42\n5\n" {
			t.Errorf("printed %q", o.Stdout)
		}
	})
}
