package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

// asLeader makes the program a session leader that is not the namespace's init.
var asLeader = []string{"setsid", "-c", "-w"}

const script = "below a script"

// places are where foster can be on a terminal with nobody above that could continue it.
var places = []struct {
	name  string
	above []string
}{
	{"PID 1", nil},
	{"session leader", asLeader},
	{script, []string{"sh", "-c", `"$@"; exit $?`, "sh"}},
}

// withoutAShell plays a scene in every place, with foster and without.
func withoutAShell(t *testing.T, command []string, scene func(c *console)) {
	for _, place := range places {
		for _, foster := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, foster %v", place.name, foster), func(t *testing.T) {
				t.Parallel()
				argv := append([]string{}, place.above...)
				if foster {
					argv = append(argv, nstest.Foster(t), "--")
				}
				c := openConsole(t, nil, append(argv, command...)...)
				c.name, c.foster = place.name, foster
				scene(c)
			})
		}
	}
}

func TestAnInteractiveShellPromptsReadsAndExits(t *testing.T) {
	for _, shell := range [][]string{{"sh"}, bash, {"bash", "--norc", "--noprofile", "-i"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			withoutAShell(t, shell, func(c *console) {
				c.expect(prompt).enter("echo $((6*7))\n").expects("42\r\n", prompt).enter("exit 3\n").ends(3)
			})
		})
	}
}

func TestNoKeystrokeIsLostWhileAShellStarts(t *testing.T) {
	for _, shell := range [][]string{{"sh"}, bash} {
		t.Run(shell[0], func(t *testing.T) {
			withoutAShell(t, shell, func(c *console) {
				for i := range 50 {
					c.enter(fmt.Sprintf("echo $((%d+1000))\n", i))
				}
				for i := range 50 {
					c.expect(fmt.Sprint(i+1000) + "\r\n")
				}
				c.enter("exit 3\n").ends(3)
			})
		})
	}
}

func TestCtrlCIsForTheCommand(t *testing.T) {
	command := []string{"sh", "-c", `trap "echo INT; read x; exit 9" INT; echo ready; sleep 1000`}
	withoutAShell(t, command, func(c *console) {
		c.expect("ready\r\n").untilState("S", "sleep").enter(ctrlC).expect("INT\r\n")
		if c.name == script {
			return // whose own shell gets the signal too when foster is not there
		}
		c.enter("\n").ends(9)
		if n := strings.Count(c.screen, "INT"); n != 1 {
			c.t.Errorf("%d signals came\n%s", n, c.scene())
		}
	})
}

func TestCtrlCInAShellIsForItsJob(t *testing.T) {
	withoutAShell(t, bash, func(c *console) {
		c.expect(prompt).enter("sleep 1000\n").untilForeground("sleep").enter(ctrlC).expects("^C", prompt)
		c.enter(ctrlC).expects("^C", prompt).enter("echo $((6*7))\n").expects("42\r\n", prompt).enter("exit 3\n").ends(3)
	})
}

func TestCtrlZInAShellBelowFosterIsForItsJob(t *testing.T) {
	withoutAShell(t, bash, func(c *console) {
		c.expect(prompt).enter("cat\n").untilForeground("cat").enter(ctrlZ).expects("Stopped", prompt)
		c.enter(ctrlZ).enter("fg\n").expects("fg\r\n", "cat\r\n").enter("one\n").expect("one\r\none\r\n")
		c.enter(ctrlD).expect(prompt).enter("exit 3\n").ends(3)
	})
}

// The kernel throws a keyboard stop away for a process that nobody could continue.
func TestCtrlZWithoutAShellAboveFreezesNothing(t *testing.T) {
	withoutAShell(t, []string{"cat"}, func(c *console) {
		c.untilForegroundOf("cat").enter("one\n").expect("one\r\none\r\n")
		for range 5 {
			c.enter(ctrlZ).expect("^Z").enter("two\n").expect("two\r\ntwo\r\n")
		}
		c.untilState("S", "cat").enter(ctrlD).ends(0)
	})
}

// untilForegroundOf waits until the program runs: without foster its group may be its parent's.
func (c *console) untilForegroundOf(name string) *console {
	c.t.Helper()
	if c.foster {
		c.untilForeground(name)
	}
	return c.untilState("S", name)
}

func TestTheCommandSeesTheWindowAndItsChangesOnce(t *testing.T) {
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			argv := append(append([]string{}, place.above...), nstest.Foster(t), "--log-level", "debug", "--", itself(t))
			c := openConsole(t, []string{"PLAY=window"}, argv...)
			c.expect("window 24 80\r\n").resize(40, 100)
			c.expect("window 40 100\r\n").resize(30, 90)
			c.expect("window 30 90\r\n").enter("\n").ends(5)
			if strings.Contains(c.screen, "forwarded") || strings.Count(c.screen, "window") != 3 {
				t.Errorf("more than one signal for each change\n%s", c.scene())
			}
		})
	}
}

func TestNoTTYSignalIsIgnoredByTheCommand(t *testing.T) {
	withoutAShell(t, []string{"sh", "-c", "grep Sig[BI] /proc/self/status; read x"}, func(c *console) {
		c.expects("SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000").enter("\n").ends(0)
	})
}

func TestWhenTheTerminalHangsUpNothingStays(t *testing.T) {
	for _, place := range places {
		if place.above == nil {
			continue // the namespace's init is the session's leader: it gets the signal and may ignore it
		}
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			above := place.above
			if above[0] == "sh" {
				above = append([]string{"setsid", "-c", "-w"}, above...)
			}
			c := openConsole(t, nil, append(append([]string{}, above...), nstest.Foster(t), "--", "sleep", "1000")...)
			c.untilForeground("sleep")
			if err := c.master.Close(); err != nil {
				t.Fatal(err)
			}
			c.until("the end", func() bool { return len(c.processes()) == 0 })
		})
	}
}

// What a command prints is prefixed in colour where a person reads it; many_test sees that a pipe gets none.
func TestPrefixesAreColouredOnATerminal(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"as it is": {"A=b", "\x1b[36ma |\x1b[0m hi\r\n"},
		"NO_COLOR": {"NO_COLOR=1", "a | hi\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := shell("echo hi; exec sleep inf")
			env := []string{c.env, "FOSTER_COMMANDS=a", "FOSTER_A_LOG=prefix", "FOSTER_A_COMMAND=" + script}
			screen := openConsole(t, env, nstest.Foster(t)).expect(c.want)
			if screen.enter(ctrlC).ends(143); c.env == "NO_COLOR=1" && strings.Contains(screen.screen, "\x1b") {
				t.Errorf("coloured: %q", screen.screen)
			}
		})
	}
}
