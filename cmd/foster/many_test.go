package main

import (
	"fmt"
	"net"
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

// Rows with several commands.

// many has foster run the commands that these variables, without FOSTER_, configure.
func many(w nstest.World, names string, variables ...string) nstest.World {
	w.Env = append(w.Env, "FOSTER_COMMANDS="+names)
	for _, v := range variables {
		w.Env = append(w.Env, "FOSTER_"+v)
	}
	return w
}

func shell(script string) string { return fmt.Sprintf(`["sh", "-c", %s]`, strconv.Quote(script)) }

func TestE04_AFailedMigrationStartsNothingElse(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o := many(w, "migrate,web", "MIGRATE_TYPE=init", "MIGRATE_COMMAND="+shell("exit 9"), "WEB_COMMAND="+shell("echo started")).Run(t)
		o.Exits(9).Ran("migrate", 9).Ran("web").Clean()
		if o.Stdout != "" {
			t.Errorf("printed %q", o.Stdout)
		}
	})
}

func TestE05_AMainCommandThatFailsEndsTheRest(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o := many(w, "a,b", "A_COMMAND="+shell("sleep 1; exit 7"), "B_COMMAND=sleep inf").Run(t)
		o.Exits(7).Ran("a", 7).Ran("b", 143).Clean().After(time.Second).Before(soon)
	})
}

func TestE06_RestartsAreCountedAndWaitedForTwiceAsLongEachTime(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o := many(w, "a", "A_COMMAND="+shell("exit 3"), "A_RESTART_POLICY=OnFailure", "A_MAX_RESTARTS=3", "A_BACKOFF=1").Run(t)
		o.Exits(3).Ran("a", 3, 3, 3, 3).Clean()
		all := o.Reports()
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if gap := all[i+1].Started.Sub(all[i].Started); gap < want || gap > want+nstest.Slow(time.Second) {
				t.Errorf("gap %d is %v, want %v", i+1, gap, want)
			}
		}
	})
}

func TestE07_SIGQUITStopsGracefully(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		for _, sig := range []unix.Signal{unix.SIGQUIT, unix.SIGINT, unix.SIGTERM} {
			script := `trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.01; done`
			r := many(w, "a,b", "A_COMMAND="+shell(script), "B_COMMAND=sleep inf").Start(t).Expect("ready").Until("b", running("sleep inf"))
			r.Signal(sig).Wait().Exits(143).Prints("bye").Ran("a", 0).Ran("b", 143).Before(soon).Clean()
		}
	})
}

func TestE08_ACommandThatIsKilledFromOutsideIsRestarted(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		script := `[ -e "$1" ] && exit 0; touch "$1"; echo ready; exec sleep 7071`
		mark := filepath.Join(t.TempDir(), "mark")
		if w.IsContainer() {
			mark = "/mark"
		}
		argv := fmt.Sprintf(`["sh", "-c", %q, "sh", %q]`, script, mark)
		r := many(w, "a", "A_COMMAND="+argv, "A_RESTART_POLICY=OnFailure", "A_BACKOFF=10ms").Start(t).Expect("ready").Until("sleep", running("sleep 7071"))
		if err := unix.Kill(r.PidOf("sleep 7071"), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.Wait().Exits(0).Ran("a", 137, 0).Clean()
	})
}

func TestS02_CommandsStopTogether(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		variables := []string{}
		for _, name := range strings.Split("A,B,C,D,E", ",") {
			variables = append(variables, name+"_COMMAND="+shell(`trap "sleep 2; exit 0" TERM; echo `+name+` ready; while :; do sleep 0.01; done`))
		}
		r := many(w, "a,b,c,d,e", variables...).Start(t)
		for _, name := range strings.Split("A,B,C,D,E", ",") {
			r.Expect(name + " ready")
		}
		began := time.Now()
		r.Signal(unix.SIGTERM).Wait().Exits(0).Clean()
		if took := time.Since(began); took < 2*time.Second || took > nstest.Slow(6*time.Second) {
			t.Errorf("took %v", took)
		}
	})
}

func TestS03_WhatIsPrintedWhileStoppingArrivesInEveryLogMode(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		for _, mode := range []string{"inherit", "prefix", "json"} {
			script := `trap "seq 1 5000; exit 0" TERM; echo ready; while :; do sleep 0.01; done`
			r := many(w, "a", "A_COMMAND="+shell(script), "A_LOG="+mode).Start(t).Expect("ready")
			o := r.Signal(unix.SIGTERM).Wait().Exits(0).Clean()
			if n := strings.Count(o.Stdout, "\n"); n != 5001 {
				t.Errorf("%s: %d lines", mode, n)
			}
		}
	})
}

// The port is a file here that only one may hold.
func TestS06_OldChildrenAreGoneBeforeTheNextRun(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		lock := filepath.Join(t.TempDir(), "lock")
		script := `exec 9>>"$1"; flock -n 9 || exit 99; setsid sleep 7071 & echo run; exit 3`
		argv := fmt.Sprintf(`["sh", "-c", %q, "sh", %q]`, script, lock)
		o := many(w, "a", "A_COMMAND="+argv, "A_RESTART_POLICY=OnFailure", "A_MAX_RESTARTS=4", "A_BACKOFF=1ms").Run(t)
		o.Exits(3).Ran("a", 3, 3, 3, 3, 3).Clean()
	})
}

func TestT15_ACommandThatKillsItsKeeperIsEndedAndNoOtherHarmed(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		bad := `prlimit --locks=5:5 setsid sleep 7071 & (setsid sleep 7072 &); until pgrep -f "sleep 7072" >/dev/null; do :; done; kill -9 $PPID; sleep 7073`
		r := many(w, "good,bad", "BAD_COMMAND="+shell(bad), "BAD_RESTART_POLICY=OnFailure", "BAD_BACKOFF=1h",
			"GOOD_COMMAND="+shell("echo ready; exec sleep inf")).Start(t).Expect("ready").ExpectReport(`"bad"`)
		r.Until("the bad one's end", func(all []wire.Process) bool { return !running("sleep 7071")(all) && !running("sleep 7072")(all) })
		r.Until("the good one", running("sleep inf"))
		r.Signal(unix.SIGTERM).Wait().Exits(143).Warns("keeper killed").Ran("bad", 137).Ran("good", 143).Clean()
	})
}

func TestSidecarsStartBeforeAndEndAfterMainInReverse(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		sidecar := func(name string) string {
			return shell("trap 'echo " + name + " ends; exit 0' TERM; echo " + name + " starts; while :; do sleep 0.01; done")
		}
		o := many(w, "one,two,web,step", "ONE_COMMAND="+sidecar("one"), "ONE_TYPE=sidecar", "TWO_COMMAND="+sidecar("two"), "TWO_TYPE=sidecar",
			"TWO_DEPENDS_ON=one:ready", "ONE_READY_EXEC=true", "STEP_TYPE=init", "STEP_COMMAND=echo step",
			"WEB_COMMAND="+shell("sleep 0.3; echo web"), "WEB_DEPENDS_ON=two:started").Run(t)
		o.Exits(0).Clean()
		if o.Stdout != "step\none starts\ntwo starts\nweb\ntwo ends\none ends\n" {
			t.Errorf("got %q", o.Stdout)
		}
	})
}

func TestReadinessIsShownByAProbeAPortOrADescriptor(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		dir := t.TempDir()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		ready := filepath.Join(dir, "ready")
		o := many(w, "probe,tcp,fd,web",
			"PROBE_TYPE=sidecar", "PROBE_COMMAND="+shell("sleep 0.3; echo probe; touch "+ready+"; exec sleep inf"), "PROBE_READY_EXEC=test -e "+ready, "PROBE_READY_PERIOD=20ms",
			"TCP_TYPE=sidecar", "TCP_COMMAND=sleep inf", "TCP_READY_TCP="+port, "TCP_DEPENDS_ON=probe:ready",
			"FD_TYPE=sidecar", "FD_COMMAND="+shell("sleep 0.3; echo fd; echo >&3; exec sleep inf"), "FD_READY_FD=3", "FD_DEPENDS_ON=tcp:ready",
			"WEB_COMMAND=echo web", "WEB_DEPENDS_ON=fd:ready").Run(t)
		o.Exits(0).Clean()
		if o.Stdout != "probe\nfd\nweb\n" {
			t.Errorf("got %q\n%s", o.Stdout, o)
		}
	})
}

func TestACommandThatDoesNotBecomeReadyHasFailed(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		o := many(w, "db,web", "DB_COMMAND=sleep inf", "DB_READY_EXEC=false", "DB_READY_PERIOD=10ms", "DB_READY_FAILURE_THRESHOLD=3",
			"WEB_COMMAND=echo web", "WEB_DEPENDS_ON=db:ready").Run(t)
		o.Exits(143).Ran("db", 143).Ran("web").Warns("not ready").Clean()
	})
}

func TestPreStopRunsBeforeTheStopSignalWithinTheGracePeriod(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		script := shell(`trap "echo told; exit 0" TERM; echo ready; while :; do sleep 0.01; done`)
		dir := t.TempDir()
		pre := filepath.Join(dir, "pre")
		r := many(w, "a", "A_COMMAND="+script, "A_PRE_STOP="+shell("sleep 0.2; echo pre >"+pre)).Start(t).Expect("ready")
		o := r.Signal(unix.SIGTERM).Wait().Exits(0).Prints("told").After(200 * time.Millisecond).Clean()
		if text, _ := os.ReadFile(pre); string(text) != "pre\n" {
			t.Errorf("pre-stop did not run\n%s", o)
		}
		// One that hangs takes the grace period, and no more.
		r = many(w, "a", "A_COMMAND="+script, "A_PRE_STOP=sleep 7071", "A_GRACE_PERIOD=300ms").Start(t).Expect("ready")
		r.Signal(unix.SIGTERM).Wait().Exits(137).After(300 * time.Millisecond).Before(soon).Clean()
		// The deadline takes the same road.
		many(w, "a", "A_COMMAND="+script, "A_PRE_STOP=true", "A_TIMEOUT=300ms").Run(t).Exits(124).Prints("told").Clean()
	})
}

func TestTheShutdownTimeoutEndsWhatIsNotDone(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		r := many(w, "a,b", "A_COMMAND="+shell(`trap "" TERM; echo ready; while :; do sleep 0.01; done`), "B_COMMAND=sleep inf", "B_TYPE=sidecar",
			"SHUTDOWN_TIMEOUT=500ms").Start(t).Expect("ready")
		r.Signal(unix.SIGTERM).Wait().Exits(137).Before(soon).Clean()
	})
}

func TestACommandSeesItsOwnVariablesAndNoOthers(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		dir := t.TempDir()
		secret := filepath.Join(dir, "secret")
		if err := os.WriteFile(filepath.Join(dir, "..data"), []byte("s3cr3t\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..data", secret); err != nil {
			t.Fatal(err)
		}
		w.Env = []string{"KEPT=1"}
		o := many(w, "a,b", "A_COMMAND=env", "A_LOG=prefix", "A_ENV_TOKEN_FILE="+secret, "A_ENV_X=100%d $x", "B_COMMAND=/usr/bin/env", "B_LOG=prefix", "B_INHERIT_ENV=false", "B_ENV_Y=2").Run(t)
		o.Exits(0).Prints("a | TOKEN=s3cr3t\n").Prints("a | X=100%d $x\n").Prints("a | KEPT=1\n").Prints("b | Y=2\n")
		for line := range strings.Lines(o.Stdout) {
			if strings.HasPrefix(line, "b | ") && line != "b | Y=2\n" || strings.Contains(line, "FOSTER_") {
				t.Errorf("saw %q", line)
			}
		}
	})
}

func TestL01_NoShortRunsOutputIsLost(t *testing.T) {
	t.Parallel()
	w, runs := nstest.Subreaper(), nstest.Rounds(500)
	o := many(w, "a", "A_COMMAND="+shell("echo hi; exit 1"), "A_LOG=prefix", "A_RESTART_POLICY=OnFailure",
		fmt.Sprint("A_MAX_RESTARTS=", runs-1), "A_BACKOFF=1ms", "A_BACKOFF_MAX=1ms").Run(t)
	if n := strings.Count(o.Exits(1).Clean().Stdout, "a | hi\n"); n != runs {
		t.Errorf("%d of %d lines", n, runs)
	}
}

func TestL02_NoLineIsLostOrGluedToAnothers(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		long := `head -c 1000000 /dev/zero | tr '\0' x; echo; printf 'no end'`
		odd := `for i in $(seq 200); do printf 'a\0b\377c\n'; done; printf 'tail'`
		o := many(w, "long,odd", "LONG_COMMAND="+shell(long), "LONG_LOG=prefix", "ODD_COMMAND="+shell(odd), "ODD_LOG=prefix").Run(t).Exits(0).Clean()
		counts := map[string]int{}
		for line := range strings.Lines(o.Stdout) {
			counts[line]++
		}
		for line, want := range map[string]int{
			"long | " + strings.Repeat("x", 1000000) + "\n": 1, "long | no end\n": 1, "odd | a\x00b\xffc\n": 200, "odd | tail\n": 1,
		} {
			if counts[line] != want {
				t.Errorf("%d times, want %d: %.40q", counts[line], want, line)
			}
			delete(counts, line)
		}
		for line, n := range counts {
			t.Errorf("%d times %.60q", n, line)
		}
	})
}

func TestL03_ACommandFeelsThatTheReaderOfItsPrefixedLinesIsGone(t *testing.T) {
	t.Parallel()
	read, write := pipe(t)
	w := nstest.Subreaper()
	w.Stdout = write
	r := many(w, "a,b", "A_COMMAND="+shell("while echo line; do :; done; exit 3"), "A_LOG=prefix", "B_COMMAND=sleep inf").Start(t)
	buf := make([]byte, 10)
	if _, err := read.Read(buf); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	_ = read.Close()
	o := r.Wait()
	if o.Code != 128+int(unix.SIGPIPE) && o.Code != 3 {
		t.Errorf("got %d\n%s", o.Code, o)
	}
}

func TestX08_EverythingWrongWithSeveralCommandsIsSaidAtOnce(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o := many(w, "web,web_env", "WEB_TIMOUT=5", "WEB_UMASK=9", "WEB_TIMEOUT=").Run(t).Exits(125)
		o.Warns("FOSTER_WEB_TIMOUT", "did you mean FOSTER_WEB_TIMEOUT?", "FOSTER_COMMANDS", "web_env", "FOSTER_WEB_UMASK", "octal", "FOSTER_WEB_TIMEOUT: empty value")
		if n := strings.Count(o.Stderr, "\n"); n != 4 {
			t.Errorf("%d messages\n%s", n, o.Stderr)
		}
	})
}

func TestX09_ASecretThatIsNotThereStartsNothing(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		o := many(w, "a", "A_COMMAND=echo started", "A_ENV_TOKEN_FILE=/no/such/secret").Run(t).Exits(125)
		if o.Warns("FOSTER_A_ENV_TOKEN_FILE", "/no/such/secret"); o.Stdout != "" {
			t.Errorf("printed %q", o.Stdout)
		}
	})
}

func TestX13_FosterWithCommandsBelowFosterWithCommands(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		inner := fmt.Sprintf(`["env", "FOSTER_COMMANDS=x,y", "FOSTER_X_COMMAND=sleep inf", "FOSTER_Y_COMMAND=sh -c 'setsid sleep 7071 & echo ready; sleep 7072'", %q]`, w.Foster(t))
		r := many(w, "a,b", "A_COMMAND="+inner, "B_COMMAND=sleep inf").Start(t).Expect("ready")
		r.Signal(unix.SIGTERM).Wait().Exits(143).Ran("a", 143).Ran("b", 143).Before(soon).Clean()
	})
}
