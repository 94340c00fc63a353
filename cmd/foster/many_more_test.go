package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

// A deadline of one command takes all of its own processes and none of another's, though all run the same program.
func TestADeadlineIsForOneOfSixteenCommandsAlone(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		var names, variables []string
		for i := range 16 {
			name := fmt.Sprintf("c%d", i)
			names = append(names, name)
			variables = append(variables, strings.ToUpper(name)+"_COMMAND="+shell("(setsid sh -c 'sleep 7071 & sleep 7071' &); setsid sleep 7071 & sleep 7071 & echo up; exec sleep 7071"))
		}
		variables = append(variables, "C7_TIMEOUT=4", "C7_GRACE_PERIOD=0", "C7_RESTART_POLICY=OnFailure", "C7_BACKOFF=1h")
		r := many(w, strings.Join(names, ","), variables...).Start(t)
		sleeps := func(want int) func([]wire.Process) bool {
			return func(all []wire.Process) bool {
				n := 0
				for _, p := range all {
					if p.Args == "sleep 7071" && p.State != "Z" {
						n++
					}
				}
				return n == want
			}
		}
		r.ExpectReport(`"name":"c7"`).Until("one command's less", sleeps(15*5))
		o := r.Signal(unix.SIGTERM).Wait().Exits(143).Ran("c7", 124).Before(soon).Clean()
		for _, run := range o.Reports() {
			// Its shell, and the five sleeps if the machine let them start before the deadline.
			if run.Name == "c7" && (run.Killed < 1 || run.Killed > 6) {
				t.Errorf("%d killed, want 6", run.Killed)
			}
		}
	})
}

func TestLimitsNiceAndTheScoreAreTheCommands(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		script := "ulimit -n; ulimit -c; cat /proc/self/oom_score_adj; nice; prlimit --nproc --noheadings -o SOFT,HARD"
		o := many(w, "a,b", "A_COMMAND="+shell(script), "A_LOG=prefix", "A_LIMIT_NOFILE=123", "A_LIMIT_CORE=0", "A_LIMIT_NPROC=4000:5000", "A_OOM_SCORE_ADJ=77", "A_NICE=7",
			"B_COMMAND="+shell("ulimit -n; cat /proc/self/oom_score_adj; nice"), "B_LOG=prefix").Run(t).Exits(0).Clean()
		for _, want := range []string{"a | 123\na | 0\na | 77\na | 7\na | 4000 5000\n"} {
			if got := lines(o.Stdout, "a | "); got != want {
				t.Errorf("got %q", got)
			}
		}
		if got := lines(o.Stdout, "b | "); strings.Contains(got, "123") || !strings.HasSuffix(got, "b | 0\nb | 0\n") {
			t.Errorf("got %q", got)
		}
	})
}

// lines are those that begin with prefix.
func lines(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestEachCommandHasItsUserAndWhoMayNotChangeItSaysSo(t *testing.T) {
	nstest.NeedRoot(t)
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		who := shell("grep -E '^(Uid|Gid|Groups):' /proc/self/status")
		o := many(w, "a,b", "A_COMMAND="+who, "A_LOG=prefix", "A_USER=1000:1001", "B_COMMAND="+who, "B_LOG=prefix").Run(t).Exits(0)
		o.Prints("a | Uid:\t1000\t1000\t1000\t1000\n").Prints("a | Gid:\t1001\t1001\t1001\t1001\n").Prints("a | Groups:\t \n").Prints("b | Uid:\t0\t0\t0\t0\n")
		w.Setup.UID = 1000
		many(w, "a", "A_COMMAND="+who).Run(t).Exits(0).Prints("Uid:\t1000\t")
		many(w, "a", "A_COMMAND="+who, "A_USER=1001:1001").Run(t).Exits(125).Warns("cannot run as uid 1001", "CAP_SETUID")
	})
}

func TestASignalGoesToThoseThatAskedForIt(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		script := func(name string) string {
			return shell(`trap 'echo ` + name + ` hup' HUP; trap 'exit 0' TERM; echo ` + name + ` ready; while :; do sleep 0.01; done`)
		}
		r := many(w, "a,b", "A_COMMAND="+script("a"), "A_FORWARD_SIGNALS=HUP", "A_SIGNAL_TARGET=process", "B_COMMAND="+script("b")).Start(t).Expect("a ready").Expect("b ready")
		o := r.Signal(unix.SIGHUP).Expect("a hup").Signal(unix.SIGTERM).Wait().Exits(0)
		if strings.Contains(o.Stdout, "b hup") {
			t.Error("the other had it too")
		}
	})
}

func TestASecondSIGINTKillsAtOnce(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		script := shell(`trap 'echo told' TERM; echo ready; while :; do sleep 0.01; done`)
		r := many(w, "a,b", "A_COMMAND="+script, "B_COMMAND=sleep inf", "A_GRACE_PERIOD=1h", "SHUTDOWN_TIMEOUT=1h").Start(t).Expect("ready")
		r.Signal(unix.SIGINT).Expect("told").Signal(unix.SIGINT).Wait().Exits(137).Before(soon).Clean()
	})
}

func TestTheTerminationMessageNamesTheFirstCauseFirst(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		path := filepath.Join(t.TempDir(), "message")
		many(w, "a,b", "A_COMMAND=sleep inf", "B_COMMAND="+shell("sleep 0.2; exit 7"), "TERMINATION_MESSAGE_PATH="+path).Run(t).Exits(7)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "b: Error, exit code 7 after ") || !strings.Contains(string(text), "\na: Stopped, exit code 143") {
			t.Errorf("got %q", text)
		}
	})
}

func TestACommandThatIsStoppedWhileItWaitsForARestartIsInTheMessage(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		path := filepath.Join(t.TempDir(), "message")
		r := many(w, "a", "A_COMMAND="+shell("exit 7"), "A_RESTART_POLICY=OnFailure", "A_BACKOFF=1h", "TERMINATION_MESSAGE_PATH="+path).Start(t).ExpectReport(`"a"`)
		r.Signal(unix.SIGTERM).Wait().Exits(7).Before(soon).Clean()
		if text, _ := os.ReadFile(path); !strings.HasPrefix(string(text), "a: Error, exit code 7 after ") {
			t.Errorf("got %q", text)
		}
	})
}

func TestTheOnlyCommandMayBeRestartedAndHasStdin(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Env = []string{"FOSTER_MAIN_RESTART_POLICY=OnFailure", "FOSTER_MAIN_MAX_RESTARTS=2", "FOSTER_MAIN_BACKOFF=1ms", "FOSTER_MAIN_LOG=prefix"}
		o := w.Run(t, "--", "sh", "-c", "readlink /proc/self/fd/0; exit 4").Exits(4).Ran("main", 4, 4, 4).Clean()
		if strings.Count(o.Stdout, "main | ") != 3 {
			t.Errorf("got %q", o.Stdout)
		}
	})
}

func TestOutputMayGoNowhereOrBeJSON(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		o := many(w, "a,b", "A_COMMAND=echo unheard", "A_LOG=null", "B_COMMAND="+shell(`printf 'x"\n\377\n'; echo err >&2`), "B_LOG=json").Run(t).Exits(0)
		o.Prints(`"command":"b","stream":"stdout","message":"x\""}`).Prints(`"message_base64":"/w=="}`).Warns(`"stream":"stderr","message":"err"}`)
		if strings.Contains(o.Stdout, "unheard") {
			t.Error("it was heard")
		}
	})
}

// A reader that stops reading holds the command up, and foster's memory stays what it is.
func TestL04_ASlowReaderIsNotPaidForWithMemory(t *testing.T) {
	t.Parallel()
	read, write := pipe(t)
	w := nstest.Subreaper()
	w.Stdout = write
	r := many(w, "a,b", "A_COMMAND="+shell("yes 'a line of some length, as programs print them, and then some more of it to make it one hundred bytes'"), "A_LOG=prefix", "B_COMMAND=sleep inf").Start(t)
	buf := make([]byte, 1<<20)
	for total := 0; total < 50<<20; {
		n, err := read.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	// Now it does not read at all, until the pipe is full.
	for waiting := 0; waiting < 56<<10; time.Sleep(time.Millisecond) {
		var err error
		if waiting, err = unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "RssAnon:")
	kib, _ := strconv.Atoi(strings.Fields(line)[0])
	if kib > 16<<10 && !nstest.Race { // the race detector keeps a shadow of all memory
		t.Errorf("%d KiB private memory", kib)
	}
	_ = write.Close()
	_ = read.Close()
	r.Signal(unix.SIGTERM).Wait().Before(time.Minute)
}
