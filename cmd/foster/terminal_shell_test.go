package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

// bash is an interactive shell with job control that leaves the terminal's settings alone.
var bash = []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}

// asWithout has a user sit at a shell twice, once with $F for nothing and once with $F for foster, and wants the two
// screens to be the same. What is typed is the same too, so a shell that names a job prints the same.
func asWithout(t *testing.T, session func(c *console)) {
	t.Helper()
	if with, without := bothWays(t, session); with != without {
		t.Errorf("with foster:\n%s\nwithout:\n%s", with, without)
	}
}

// bothWays is asWithout for a session in which the shell tells of its jobs when it pleases.
func bothWays(t *testing.T, session func(c *console)) (with, without string) {
	t.Helper()
	without = sit(t, false, session)
	return sit(t, true, session), without
}

func sit(t *testing.T, foster bool, session func(c *console)) (screen string) {
	t.Helper()
	name, f := "without", "F="
	if foster {
		name, f = "with", "F="+nstest.Foster(t)+" --"
	}
	t.Run(name, func(t *testing.T) {
		nstest.NeedProgram(t, bash[0])
		c := openConsole(t, []string{f, "SELF=" + itself(t)}, bash...)
		c.foster = foster
		c.expect(prompt)
		session(c)
		c.untilForeground("bash")
		screen = comparable(c.screen[:c.seen])
		c.enter("exec sh -c 'exit 7'\n").ends(7) // exit would mind stopped jobs
	})
	return screen
}

// comparable takes out what differs for good reason: pids; and the empty line that bash adds after each child that died
// of SIGINT, since its child is now foster, which exits with 130.
func comparable(screen string) string {
	screen = pids.ReplaceAllString(screen, "[$1] PID")
	return interrupted.ReplaceAllString(screen, "^C"+prompt)
}

var (
	pids        = regexp.MustCompile(`\[(\d)\] \d+`)
	interrupted = regexp.MustCompile(`\^C[\r\n]+` + prompt)
)

func TestCtrlCEndsAJobAndBringsTheShellBack(t *testing.T) {
	t.Parallel()
	asWithout(t, func(c *console) {
		c.enter("$F sleep 1000\n").untilForeground("sleep").enter(ctrlC).expects("^C", prompt)
		c.enter("echo $?\n").expects("130\r\n", prompt)
	})
}

func TestCtrlZStopsFosterWithItsCommandAndFgContinuesBoth(t *testing.T) {
	t.Parallel()
	asWithout(t, func(c *console) {
		c.enter("$F cat\n").untilForeground("cat").enter("one\n").expect("one\r\none\r\n")
		for range 3 {
			c.enter(ctrlZ).expects("Stopped", prompt).untilState("T", "cat")
			c.enter("fg\n").expects("$F cat\r\n").untilForeground("cat").enter("two\n").expect("two\r\ntwo\r\n")
		}
		c.enter(ctrlD).expect(prompt).enter("echo $?\n").expects("0\r\n", prompt)
	})
}

func TestAJobThatWasStoppedGoesOnInTheBackgroundAndCanBeKilled(t *testing.T) {
	t.Parallel()
	bothWays(t, func(c *console) {
		c.enter("$F sleep 1000\n").untilForeground("sleep").enter(ctrlZ).expects("Stopped", prompt)
		c.untilState("T", "sleep")
		c.enter("bg\n").expects("$F sleep 1000 &\r\n", prompt).untilState("S", "sleep")
		c.enter("kill %1; wait %1; echo code $?\n").expects("code 143\r\n", prompt).untilAlone()
	})
}

func TestAStoppedJobCanBeKilled(t *testing.T) {
	t.Parallel()
	bothWays(t, func(c *console) {
		c.enter("$F sleep 1000\n").untilForeground("sleep").enter(ctrlZ).expects("Stopped", prompt)
		c.untilState("T", "sleep").enter("kill %1\n").expect("kill %1\r\n").untilAlone()
	})
}

// The foreground has come and gone, and back, without a SIGCONT: a job that runs gets none.
func TestAJobThatRunsComesBackToTheForeground(t *testing.T) {
	t.Parallel()
	asWithout(t, func(c *console) {
		c.enter("$F sleep 1000 &\n").expects("[1] ", prompt).untilState("S", "sleep")
		c.enter("fg\n").expects("fg\r\n", "$F sleep 1000\r\n")
		c.until("bash in the background", func() bool { return nameOf(c.foreground()) != "bash" })
		c.enter(ctrlZ).expects("Stopped", prompt).untilState("T", "sleep")
		c.enter("bg\n").expects("&\r\n", prompt).untilState("S", "sleep")
		c.enter("fg\n").expects("fg\r\n", "$F sleep 1000\r\n")
		c.until("bash in the background", func() bool { return nameOf(c.foreground()) != "bash" })
		c.enter(ctrlC).expects("^C", prompt).enter("echo $?\n").expects("130\r\n", prompt)
	})
}

func TestABackgroundJobThatReadsIsStoppedUntilFg(t *testing.T) {
	t.Parallel()
	bothWays(t, func(c *console) {
		c.enter("$F cat &\n").expect("[1] ").untilState("T", "cat")
		if name := nameOf(c.foreground()); name != "bash" {
			c.t.Errorf("the terminal was grabbed: %s has it", name)
		}
		c.told("Stopped")
		c.enter("fg\n").expects("fg\r\n", "$F cat\r\n").enter("one\n").expect("one\r\none\r\n")
		c.enter(ctrlZ).expects("Stopped", prompt).enter("bg\n").expect("&\r\n").untilState("T", "cat").told("Stopped")
		c.enter("fg\n").expects("fg\r\n", "$F cat\r\n")
		c.enter("two\n").expect("two\r\ntwo\r\n").enter(ctrlD).expect(prompt)
	})
}

// What foster says in the background is not worth stopping for, whatever the terminal's settings.
func TestWithTostopOnlyTheCommandsOwnOutputStopsABackgroundJob(t *testing.T) {
	t.Parallel()
	echo := nstest.NeedProgram(t, "echo") // not the shell's own
	bothWays(t, func(c *console) {
		c.enter("stty tostop\n").expect(prompt).enter("$F "+echo+" hi &\n").expect("[1] ").untilState("T", "echo")
		c.told("Stopped").enter("fg\n").expects("fg\r\n", " hi\r\n", "hi\r\n", prompt)
	})
}

func TestPipelinesStopAndGoOnAsOne(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`$F sh -c "cat | cat"`, `$F cat | cat`, `cat | $F cat`, `$F cat | $F cat`, `$F $F cat`, `sh -c "$F cat; :"`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			asWithout(t, func(c *console) {
				c.enter(line+"\n").untilState("S", "cat").enter("one\n").expect("one\r\none\r\n")
				c.enter(ctrlZ).expects("^Z", "Stopped", prompt).untilState("T", "cat")
				c.enter("fg\n").expects("fg\r\n", line+"\r\n").enter("two\n").expect("two\r\ntwo\r\n")
				c.enter(ctrlD).expect(prompt)
			})
		})
	}
}

func TestCtrlCEndsAllOfAPipeline(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`$F sleep 1000 | sleep 1001`, `sleep 1000 | $F sleep 1001`, `$F sh -c "sleep 1000 | sleep 1001"`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			asWithout(t, func(c *console) {
				c.enter(line+"\n").untilState("S", "sleep").enter(ctrlC).expects("^C", prompt)
				c.untilAlone()
			})
		})
	}
}

// Pagers read the keyboard by name, because their standard input is the text.
func TestAPipelineWhoseLastPartReadsTheTerminalIsNotStopped(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`$F cat /dev/null | sh -c "cat; read x </dev/tty; echo got \$x"`,
		`cat /dev/null | $F sh -c "cat; read x </dev/tty; echo got \$x"`,
		`$F sh -c "echo text; echo more" | sh -c "read y; read x </dev/tty; echo got \$x"`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			asWithout(t, func(c *console) {
				c.enter(line+"\n").expect("\r\n").enter("key\n").expects("got key\r\n", prompt)
			})
		})
	}
}

func TestAShellBelowFosterCanBeSuspended(t *testing.T) {
	t.Parallel()
	bothWays(t, func(c *console) {
		c.enter("PS1='inner: ' $F " + strings.Join(bash, " ") + "\n").expect("inner: ")
		c.enter("suspend\n").expects("Stopped", prompt)
		c.enter("fg\n").expects("fg\r\n", "-i\r\n").enter("echo $((6*7))\n").expect("42\r\n")
		c.enter("exit 3\n").expects("exit\r\n", prompt).enter("echo $?\n").expects("3\r\n", prompt)
	})
}

func TestACommandMayTidyUpBeforeItStops(t *testing.T) {
	t.Parallel()
	asWithout(t, func(c *console) {
		c.enter("PLAY=editor $F $SELF\n").expect("open\r\n").enter(ctrlZ).expects("tidy\r\n", "Stopped", prompt)
		c.enter("fg\n").expect("again\r\n").enter("text\n").expects("read text\r\n", prompt)
	})
}

func TestACommandThatCannotStartLeavesTheTerminalToTheShell(t *testing.T) {
	t.Parallel()
	c := openConsole(t, []string{"F=" + nstest.Foster(t) + " --"}, bash...)
	c.expect(prompt).enter("$F /nope\n").expects("no such file", prompt).untilForeground("bash")
	c.enter("echo $?\n").expects("127\r\n", prompt)
	c.enter(`sh -c "$F /nope; cat"` + "\n").expect("no such file or directory\r\n").enter("one\n").expect("one\r\none\r\n")
	c.enter(ctrlD).expect(prompt).enter("exit\n").ends(0)
}
