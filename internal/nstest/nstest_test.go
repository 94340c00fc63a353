package nstest

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// A harness that cannot see what is wrong would let every row pass, so these tests run programs that do it wrong.

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func shell(w World) World {
	w.Program = []string{"/bin/sh", "-c"}
	if w.IsContainer() {
		w.Program[0] = "/bin/busybox"
		w.Program = append([]string{"/bin/busybox", "sh"}, w.Program[1:]...)
	}
	return w
}

func TestLeftoversAndHeldPipesAreSeen(t *testing.T) {
	o := shell(Subreaper()).Run(t, "setsid sleep 7071 & exit 3")
	o.Exits(3)
	if len(o.Left) != 1 || o.Left[0].Parent != 1 || o.EOF {
		t.Fatalf("left %v, EOF %v", o.Left, o.EOF)
	}
}

func TestAZombieIsSeen(t *testing.T) {
	w := Subreaper()
	w.Program = []string{Helper(t)}
	r := w.Start(t, "neglect").Expect("ready")
	if o := r.Signal(unix.SIGKILL).Wait(); o.Signal != 9 || len(o.Left) != 1 || o.Left[0].State != "Z" {
		t.Fatalf("signal %d, left %v", o.Signal, o.Left)
	}
}

func TestPID1SeesItselfAsPID1(t *testing.T) {
	o := shell(PID1()).Run(t, "echo $$; exit 7")
	if o.Exits(7).Prints("1\n"); len(o.Left) != 0 || !o.EOF {
		t.Fatalf("left %v, EOF %v", o.Left, o.EOF)
	}
}

func TestAContainersCodeAndOutputAreSeen(t *testing.T) {
	o := shell(Docker()).Run(t, "echo $$; echo oops >&2; exit 7")
	o.Exits(7).Prints("1\n").Warns("oops")
}

func TestWhatRunsCanBeListedAndSignalled(t *testing.T) {
	for _, w := range []World{Subreaper(), PID1(), Docker()} {
		t.Run(w.Name, func(t *testing.T) {
			w.Program = []string{w.Helper(t)}
			r := w.Start(t, "slow-stop", "1ms").Expect("ready")
			r.Until("itself", func(all []wire.Process) bool { return len(all) > 0 })
			r.Signal(unix.SIGTERM).Wait().Exits(0).Prints("cleaned up")
		})
	}
}

func TestASetupIsFound(t *testing.T) {
	NeedRoot(t)
	w := shell(Subreaper())
	w.Setup.NoFile, w.Setup.Fds, w.Setup.UID = 777, []int{7}, 1000
	if o := w.Run(t, "ulimit -Sn; id -u; exec ls /proc/self/fd"); o.Stdout != "777\n1000\n0\n1\n2\n3\n7\n" {
		t.Errorf("found %q", o.Stdout)
	}
}

// grep, because dash clears the mask it was given.
func TestASignalStateIsFound(t *testing.T) {
	w := Subreaper()
	w.Program = []string{NeedProgram(t, "grep"), "Sig"}
	w.Setup.Block, w.Setup.Ignore = []int{15, 64}, []int{1}
	o := w.Run(t, "/proc/self/status")
	o.Prints("SigBlk:\t8000000000004000").Prints("SigIgn:\t0000000000000001")
}

func TestAPidsCgroupHolds(t *testing.T) {
	w := Subreaper()
	w.Program = []string{Helper(t)}
	w.Setup.Cgroups = []string{PidsCgroup(t, 50)}
	r := w.Start(t, "fill").Expect("ready")
	if n := len(r.Processes()); n > 52 || n < 20 {
		t.Errorf("%d processes", n)
	}
	r.Signal(unix.SIGKILL).Wait()
}

func TestStormsEndWithTheirNamespace(t *testing.T) {
	for _, role := range [][]string{{"comet"}, {"storm", "100"}} {
		w := PID1()
		w.Program = []string{Helper(t)}
		w.Setup.Cgroups = []string{PidsCgroup(t, 120)}
		r := w.Start(t, role...).Expect("ready")
		if o := r.Signal(unix.SIGKILL).Wait().Before(10 * time.Second); o.Signal != 9 {
			t.Errorf("%v: signal %d", role, o.Signal)
		}
	}
}

func TestMainThreadThatExitsLeavesAZombieThatLives(t *testing.T) {
	w := Subreaper()
	w.Program = []string{Helper(t)}
	r := w.Start(t, "main-exits").Expect("ready")
	r.Until("a live zombie", func(all []wire.Process) bool {
		return len(all) == 2 && all[1].State == "Z"
	})
}
