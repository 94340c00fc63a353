package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// inScript runs foster below a shell without job control, which does not put the terminal right itself, says the code,
// and then waits for a line.
func inScript(t *testing.T, args ...string) *console {
	t.Helper()
	argv := append([]string{"sh", "-c", `"$@"; echo code $?; read x; test "$x" = line`, "sh", nstest.Foster(t)}, args...)
	return openConsole(t, nil, argv...)
}

// isBack wants the script to have the terminal with these settings, and nothing to be left.
func (c *console) isBack(want unix.Termios) {
	c.t.Helper()
	if now := c.settings(); now != want {
		c.t.Errorf("settings %+v, want %+v", now, want)
	}
	if pgid := c.foreground(); pgid != c.cmd.Process.Pid {
		c.t.Errorf("the foreground group is %d (%s), want %d", pgid, nameOf(pgid), c.cmd.Process.Pid)
	}
	if left := c.processes(); len(left) != 1 {
		c.t.Errorf("left behind\n%s", c.scene())
	}
	c.enter("line\n").ends(0)
}

const rawMode = "stty raw -echo; echo ready; "

func TestTheSettingsOfACommandThatWasKilledAreUndone(t *testing.T) {
	for name, args := range map[string][]string{
		"deadline, KILL": {"-t", "3s", "-g", "0", "--", "sh", "-c", rawMode + "exec sleep 1000"},
		"deadline, TERM": {"-t", "3s", "-g", "60", "--", "sh", "-c", rawMode + "exec sleep 1000"},
		"itself":         {"--", "sh", "-c", rawMode + "kill -KILL $$"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := inScript(t, args...)
			c.expect("ready").expect("code 1")
			c.expect("\r\n").isBack(c.before)
		})
	}
}

func TestTheSettingsOfACommandThatEndedByItselfStay(t *testing.T) {
	t.Parallel()
	c := inScript(t, "--", "stty", "-echo")
	want := c.before
	want.Lflag &^= unix.ECHO
	c.expect("code 0\r\n").isBack(want)
}

func TestADeadlineEndsAnInteractiveShellWithItsJobs(t *testing.T) {
	t.Parallel()
	args := append([]string{"-t", "5s", "-g", "0", "--"}, bash...)
	c := inScript(t, args...)
	c.expect(prompt).enter("sleep 1000 & setsid sleep 1001 &\n").expect(prompt)
	c.enter("sleep 1002\n").untilForeground("sleep").expect("code 124\r\n").isBack(c.before)
}

func TestADeadlineEndsAStoppedJobWhenItGoesOn(t *testing.T) {
	t.Parallel()
	c := openConsole(t, []string{"F=" + nstest.Foster(t) + " -t 2s --"}, bash...)
	began := time.Now()
	c.expect(prompt).enter("$F cat\n").untilForeground("cat").enter(ctrlZ).expects("Stopped", prompt)
	c.until("the deadline", func() bool { return time.Since(began) > 3*time.Second })
	c.enter("fg\n").expect(prompt).untilForeground("bash").enter("echo $?\n").expect("124\r\n").enter("exit\n").ends(0)
}

func TestADeadlineEndsAJobInTheBackground(t *testing.T) {
	t.Parallel()
	c := openConsole(t, []string{"F=" + nstest.Foster(t) + " -t 300ms --"}, bash...)
	c.expect(prompt).enter("$F sh -c 'sleep 1000 & wait' &\n").expects("[1] ", prompt)
	c.untilAlone().untilForeground("bash")
	c.enter("wait %1; echo code $?\n").expects("code 124\r\n", prompt).enter("exit\n").ends(0)
}

// A write to a terminal with tostop is refused to a background process, again and again if it insists.
func TestFosterInTheBackgroundLogsWithoutStoppingOrSpinning(t *testing.T) {
	t.Parallel()
	env := []string{"FOSTER_LOG_LEVEL=info", "F=" + nstest.Foster(t) + " -t 700ms -g 0 --"}
	c := openConsole(t, env, bash...)
	c.expect(prompt).enter("stty tostop\n").expect(prompt)
	c.enter("$F sleep 1000 &\n").expects("process started", "stopping", "process ended")
	c.untilAlone()
	c.enter("wait\n").expects("wait\r\n", prompt) // so that the shell has its times
	if used := childTime(t, c.cmd.Process.Pid); used > nstest.Slow(250*time.Millisecond) {
		t.Errorf("foster used %v of CPU time\n%s", used, c.scene())
	}
	c.enter("exit\n").ends(0)
}

// childTime is the CPU time of the children that a process has waited for.
func childTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	const user, system = 13, 14 // counted from the state, which follows the name
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := 0
	for _, i := range []int{user, system} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
