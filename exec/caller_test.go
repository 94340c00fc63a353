package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestFiftyCommandsAtOnceLeaveNoDescriptorAndNoGoroutine(t *testing.T) {
	run(t, sh("true")) // what is opened once is open now
	fds, goroutines := descriptors(t), runtime.NumGoroutine()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			var out Buffer
			out.Max = 100
			cmd := sh(`read x; setsid sleep 7071 & echo "$x"; exit "$x"`)
			cmd.Stdin, cmd.Stdout = strings.NewReader(fmt.Sprintln(i)), &out
			res, err := cmd.Run(t.Context())
			if err != nil || res.ExitCode != i || string(out.Bytes()) != fmt.Sprintln(i) || res.Killed != 1 {
				t.Errorf("%d: %+v, %v, %q", i, res, err, out.Bytes())
			}
		})
		all.Go(func() {
			if _, err := Command("/no/such/program").Run(t.Context()); err == nil {
				t.Error("no error")
			}
		})
	}
	all.Wait()
	// A goroutine may be on its last instructions when Wait returns.
	for end := time.Now().Add(bound); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines, before %d:\n%s", n, goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if after := descriptors(t); len(after) > len(fds) {
		t.Errorf("before: %v\nafter: %v", fds, after)
	}
}

func descriptors(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		list = append(list, e.Name()+" "+to)
	}
	return list
}

func TestACallerThatIsKilledTakesTheTreeWithIt(t *testing.T) {
	t.Parallel()
	cmd := caller(t, "call", "trap '' TERM; setsid sleep 7071 & echo $!; echo $$; echo $PPID; while :; do sleep 7071; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	var pids []int
	for len(pids) < 3 && in.Scan() {
		pids = append(pids, atoi(t, in.Text()))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if in.Scan() { // the end of the file comes when the last of the tree is gone
		t.Errorf("printed %q after its end", in.Text())
	}
	if err := cmd.Wait(); err == nil || len(pids) != 3 {
		t.Fatalf("pids %v, ended with %v", pids, err)
	}
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
}

// goAhead gives the command a Stdin, from which it reads a line when what is returned has been called.
func goAhead(t *testing.T, cmd *Cmd) func() {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = read
	t.Cleanup(func() {
		_ = read.Close()
		_ = write.Close()
	})
	return func() {
		if _, err := write.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKeeperThatItsCommandKillsIsAnErrorAndNoHang(t *testing.T) {
	t.Parallel()
	cmd := sh("read go; kill -KILL $PPID; exec sleep 7071")
	proceed := goAhead(t, cmd)
	start(t, cmd)
	pid := cmd.Pid()
	proceed()
	res, err := waitErr(t, cmd)
	if err == nil || res != nil {
		t.Errorf("got %+v, %v", res, err)
	}
	awaitEnd(t, pid)
}

func TestAKeeperThatItsCommandStopsIsNoHang(t *testing.T) {
	t.Parallel()
	cmd := sh("read go; kill -STOP $PPID; exec sleep 7071")
	proceed := goAhead(t, cmd)
	start(t, cmd)
	proceed()
	var status unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.keeper, &status, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Kill(); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, cmd); res.Reason != Stopped || res.Signal != unix.SIGKILL {
		t.Errorf("got %+v", res)
	}
}

func TestAProgramThatIgnoresSIGCHLDLearnsHowItsCommandEnded(t *testing.T) {
	t.Parallel()
	if got := says(t, "ignoring-chld", "exit 7"); got != "Error 7" {
		t.Errorf("got %q", got)
	}
}

func TestACommandStartsWithDefaultSignals(t *testing.T) {
	t.Parallel()
	const script = "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"
	// But for an ignored SIGHUP or SIGINT, as under nohup(1), which a Go program leaves as it is.
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "SigIgn:\t")
	inherited, err := strconv.ParseUint(line[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("SigBlk:\t%016x\nSigIgn:\t%016x\nCompleted 0", 0, inherited&3)
	for _, role := range []string{"call", "ignoring-chld"} {
		if got := says(t, role, script); got != want {
			t.Errorf("%s: got %q", role, got)
		}
	}
}

func TestACommandInheritsNoDescriptorOfItsCaller(t *testing.T) {
	t.Parallel()
	// The last one is the directory that ls reads.
	if got := says(t, "with-descriptor", "exec ls /proc/self/fd"); got != "0\n1\n2\n3\nCompleted 0" {
		t.Errorf("got %q", got)
	}
}

func TestTheLimitOnDescriptorsIsTheOneTheCallerWasStartedWith(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := sh(`ulimit -Sn 321 && exec "$1" call 'ulimit -Sn'`, self)
	if _, out := run(t, cmd); out != "321\nCompleted 0\n" {
		t.Errorf("got %q", out)
	}
}

func TestAnotherUserWithoutTheRightToIsRefused(t *testing.T) {
	t.Parallel()
	nstest.NeedRoot(t)
	cmd := caller(t, "as-nobody", "exit 0")
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 4711, Gid: 4711}
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), "true ") {
		t.Errorf("got %q, %v", out, err)
	}
}

// The socket of a keeper that does not read fills up; what comes then is an error, and the end of ctx is heard.
func TestAStoppedKeeperRefusesOrdersAndHearsTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	cmd := sh("read go; kill -STOP $PPID; exec sleep 7071")
	proceed := goAhead(t, cmd)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := cmd.Start(ctx); err != nil {
		t.Fatal(err)
	}
	proceed()
	var status unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.keeper, &status, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; err == nil && i < 1<<20; i++ {
		err = cmd.Signal(unix.SIGWINCH)
	}
	if err == nil {
		t.Error("no order was refused")
	}
	cancel()
	if res, err := waitErr(t, cmd); !errors.Is(err, context.Canceled) || res == nil || res.Signal != unix.SIGKILL {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestACancelledContextIsTheErrorHoweverFastTheEnd(t *testing.T) {
	t.Parallel()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := sh("sleep 7071")
		if err := cmd.Start(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := waitErr(t, cmd); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWhatIsNoPolicyOrTargetIsAnErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	for _, spec := range []Spec{{Leftovers: 7}, {SignalTarget: -1}} {
		cmd := sh("exit 0")
		cmd.Leftovers, cmd.SignalTarget = spec.Leftovers, spec.SignalTarget
		var failed *StartError
		if err := cmd.Start(t.Context()); !errors.As(err, &failed) {
			t.Errorf("got %v", err)
		}
	}
}

func TestLookupOfNothingIsAnErrorAndARelativePathIsTheDirectorys(t *testing.T) {
	t.Parallel()
	var failed *StartError
	if _, err := new(Spec).Lookup(); !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "bin", "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Args: []string{"program"}, Dir: dir, Env: []string{"PATH=bin"}}
	if got, err := spec.Lookup(); got != program || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
