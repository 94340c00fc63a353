package exec

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLeftoversAreKilledAtOnceWithoutAGracePeriod(t *testing.T) {
	t.Parallel()
	cmd := sh("setsid sh -c 'echo $$; exec sleep 7071' & sleep 7071 & echo $!; read go; exit 7")
	proceed := goAhead(t, cmd)
	c := open(t, cmd)
	one, other := c.number(), c.number()
	proceed()
	res := wait(t, cmd)
	gone(t, one, other)
	if res.ExitCode != 7 || res.Reason != Error || res.Killed != 2 || res.Escaped != 1 {
		t.Errorf("got %+v", res)
	}
}

func TestLeftoversGetTheStopSignalAndTheGracePeriod(t *testing.T) {
	t.Parallel()
	cmd := sh(`
		# A child that is forked and not yet executed has its shell's trap, and would swallow the signal.
		leftover='trap "echo cleaned; exit" TERM; sh -c "echo ready; exec sleep 7071" & wait'
		sh -c "$leftover" & setsid sh -c "$leftover" &
		read go; exit 3`)
	cmd.GracePeriod = time.Hour
	proceed := goAhead(t, cmd)
	c := open(t, cmd)
	for range 2 {
		c.line()
	}
	proceed()
	for range 2 {
		if line := c.line(); line != "cleaned" {
			t.Errorf("printed %q", line)
		}
	}
	if res := wait(t, cmd); res.ExitCode != 3 || res.Reason != Error || res.Killed != 0 {
		t.Errorf("got %+v", res)
	}
}

func TestLeftoversThatAreWaitedForMayFinish(t *testing.T) {
	t.Parallel()
	cmd := sh("(read go; echo late) <&3 3<&- & exit 3")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdin, cmd.Leftovers = read, LeftoversWait
	cmd.Args[2] = "exec 3<&0; " + cmd.Args[2] // a shell gives /dev/null to what runs in the background
	c := open(t, cmd)
	awaitEnd(t, cmd.Pid())
	if _, err := write.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if line := c.line(); line != "late" {
		t.Errorf("printed %q", line)
	}
	if res := wait(t, cmd); res.ExitCode != 3 || res.Killed != 0 || res.Reason != Error {
		t.Errorf("got %+v", res)
	}
}

func TestLeftoversThatAreWaitedForHaveTheDeadline(t *testing.T) {
	t.Parallel()
	cmd := sh("setsid sleep 7071 & echo $!; exit 3")
	cmd.Leftovers, cmd.Timeout = LeftoversWait, 300*time.Millisecond
	c := open(t, cmd)
	pid := c.number()
	if res := wait(t, cmd); res.ExitCode != CodeDeadline || res.Reason != DeadlineExceeded || res.Killed != 1 {
		t.Errorf("got %+v", res)
	}
	gone(t, pid)
}

func TestLeftoversThatAreLeftLiveOn(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	// It ends with the pipe, so also where the test fails.
	cmd := sh("exec 3<&0; setsid cat <&3 >/dev/null 2>&1 & echo $!; exit 4")
	cmd.Stdin, cmd.Leftovers = read, LeftoversLeave
	c := open(t, cmd)
	pid := c.number()
	if res := wait(t, cmd); res.ExitCode != 4 || res.Killed != 0 {
		t.Errorf("got %+v", res)
	}
	if err := unix.Kill(pid, 0); err != nil {
		t.Errorf("it did not live on: %v", err)
	}
	_ = write.Close()
	awaitEnd(t, pid)
}

func TestTheOutputEndsWhenTheCommandClosesIt(t *testing.T) {
	t.Parallel()
	cmd := sh("echo last; exec >&- 2>&-; read go; exit 3")
	proceed := goAhead(t, cmd)
	c := open(t, cmd)
	if got := c.rest(); got != "last" { // the keeper holds it no longer
		t.Errorf("printed %q", got)
	}
	proceed()
	if res := wait(t, cmd); res.ExitCode != 3 {
		t.Errorf("got %+v", res)
	}
}
