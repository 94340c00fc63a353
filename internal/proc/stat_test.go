package proc

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// tail is what follows the name, with a mark in every field that foster reads.
const tail = " S 11 22 33 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 44 0 55 1000 200 18446744073709551615 1 1 0\n"

// nasty are names that a process may give itself with prctl(PR_SET_NAME).
var nasty = []string{
	"sh", "", " ", "a b", "(sd-pam)", "((", "))", ")", ") R 1 1 1 (", "x) Z 9 9 9 0 -1", "a\nb", "\n) S 1\n", "\x00\xff\xfe", "tab\t)",
}

func TestNoNameShiftsTheFields(t *testing.T) {
	for _, name := range nasty {
		checkNamed(t, name)
	}
}

func FuzzNoNameShiftsTheFields(f *testing.F) {
	for _, name := range nasty {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) { checkNamed(t, name) })
}

func checkNamed(t *testing.T, name string) {
	t.Helper()
	want := Stat{Pid: 7, State: 'S', Parent: 11, Group: 22, Session: 33, Threads: 44, StartTime: 55}
	if got, ok := ParseStat([]byte("7 (" + name + ")" + tail)); !ok || got != want {
		t.Errorf("name %q: got %+v, %v; want %+v", name, got, ok, want)
	}
}

func FuzzNoTextMakesParseStatPanic(f *testing.F) {
	f.Add([]byte("7 (sh)" + tail))
	for _, text := range broken {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, ok := ParseStat(text)
		switch {
		case !ok && s.Pid != 0 && s.State == 0:
			t.Errorf("%q: refused, but begun: %+v", text, s)
		case ok && (s.State == 0 || s.Pid < 0 || s.Parent < 0 || s.Group < 0 || s.Session < 0 || s.Threads < 0):
			t.Errorf("%q: accepted as %+v", text, s)
		}
	})
}

var broken = []string{
	"", "7", "7 (sh", "7 sh)", "7 )sh( S 1 1 1", "(sh)" + tail, "x (sh)" + tail, "-7 (sh)" + tail,
	"7 (sh)", "7 (sh) ", "7 (sh) S", "7 (sh) S 11 22", "7 (sh) SS 11 22 33 0 -1 0 1 2 3 4 5 6 7 8 20 0 44 0 55",
	"7 (sh) S -11 22 33 0 -1 0 1 2 3 4 5 6 7 8 20 0 44 0 55", "7 (sh) S 11 22 33 0 -1 0 1 2 3 4 5 6 7 8 20 0 44 0",
	"7 (sh) S 11 22 33 0 -1 0 1 2 3 4 5 6 7 8 20 0 44 0 x", "9999999999999999999 (sh)" + tail,
}

func TestAStatThatIsCutOffOrNoStatAtAllIsRefused(t *testing.T) {
	for _, text := range broken {
		if s, ok := ParseStat([]byte(text)); ok {
			t.Errorf("%q: accepted as %+v", text, s)
		}
	}
}

func TestAZombieWithOtherThreadsIsNotDead(t *testing.T) {
	for _, c := range []struct {
		state   byte
		threads int
		dead    bool
	}{{'Z', 1, true}, {'Z', 0, true}, {'Z', 2, false}, {'X', 1, true}, {'R', 1, false}, {'D', 1, false}, {'T', 3, false}} {
		if got := (Stat{State: c.state, Threads: c.threads}).Dead(); got != c.dead {
			t.Errorf("state %c, %d threads: dead is %v", c.state, c.threads, got)
		}
	}
}

func TestParsingAStatDoesNotAllocate(t *testing.T) {
	text := []byte("7 (a b) c)" + tail)
	if n := testing.AllocsPerRun(100, func() { ParseStat(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOwnNamespaceTakesExactlyOnePid(t *testing.T) {
	for _, c := range []struct {
		status string
		pid    int
		own    bool
	}{
		{"Name:\tsh\nPid:\t7\nNSpid:\t7\n", 7, true},
		{"Name:\tsh\nPid:\t7\nNSpid:\t7", 7, true},
		{"Name:\tsh\nPid:\t700\nNSpid:\t700\t7\n", 7, false}, // the mount is of a namespace above
		{"Name:\tsh\nPid:\t7\nNSpid:\t7\t1\n", 7, false},
		{"Name:\tsh\nPid:\t8\nNSpid:\t8\n", 7, false},
		{"Name:\tsh\nPid:\t77\nNSpid:\t77\n", 7, false},
		{"Name:\tsh\nTgid:\t7\nPid:\t7\nPPid:\t1\n", 7, true}, // before Linux 4.1
		{"Name:\tsh\nTgid:\t7\nPid:\t8\nPPid:\t7\n", 7, false},
		{"Name:\tNSpid:\\n7\nPid:\t8\nNSpid:\t8\n", 7, false},
		{"", 7, false},
	} {
		if got := ownNamespace(c.status, c.pid); got != c.own {
			t.Errorf("pid %d in %q: %v, want %v", c.pid, c.status, got, c.own)
		}
	}
}

func TestStatOfTheTestItselfIsRight(t *testing.T) {
	r := reader(t)
	s, ok := r.Stat(os.Getpid())
	if !ok || s.Pid != os.Getpid() || s.Parent != os.Getppid() || s.Threads < 1 || s.StartTime == 0 || s.Dead() {
		t.Errorf("got %+v, %v", s, ok)
	}
	if _, ok := r.Stat(1 << 23); ok {
		t.Error("a pid that no process can have has a state")
	}
}

func TestNameUIDAndTracerOfTheTestItselfAreRight(t *testing.T) {
	r := reader(t)
	self := os.Getpid()
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(r.Name(self), r.UID(self), r.Tracer(self))
	if want := fmt.Sprint(strings.TrimSpace(string(comm)), os.Geteuid(), 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	const nobody = 1 << 23
	if got := fmt.Sprint(r.Name(nobody), r.UID(nobody), r.Tracer(nobody)); got != fmt.Sprint("?", -1, 0) {
		t.Errorf("of no process: %s", got)
	}
}
