package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

// What can be seen of a console beside its screen: the processes and who has the terminal.

// told presses Enter until the shell says this of a job: it does so before a prompt, once it has waited for it.
func (c *console) told(text string) *console {
	c.t.Helper()
	from := c.seen
	return c.until("word of "+text, func() bool {
		c.enter("\n").expect("\r\n").expect(prompt)
		return strings.Contains(c.screen[from:c.seen], text)
	})
}

// until polls for what no program prints.
func (c *console) until(what string, holds func() bool) *console {
	c.t.Helper()
	for end := time.Now().Add(nstest.Slow(nstest.Patience)); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("never saw %s\n%s", what, c.scene())
		}
	}
	return c
}

// untilForeground waits until a program, which prints nothing itself, has the terminal.
func (c *console) untilForeground(name string) *console {
	c.t.Helper()
	return c.until(name+" in the foreground", func() bool { return nameOf(c.foreground()) == name })
}

// untilState waits until all processes of these names are in that state, and there is one of each at least.
func (c *console) untilState(state string, names ...string) *console {
	c.t.Helper()
	if c.foster {
		names = append(names, "foster")
	}
	return c.until(fmt.Sprint(names, " in state ", state), func() bool {
		found := map[string]bool{}
		for _, p := range c.processes() {
			for _, name := range names {
				if p.Name == name && p.State != state {
					return false
				}
				found[p.Name] = true
			}
		}
		for _, name := range names {
			if !found[name] {
				return false
			}
		}
		return true
	})
}

// untilAlone waits until only the shell is left. A zombie is the shell's to reap, when it pleases.
func (c *console) untilAlone() *console {
	c.t.Helper()
	return c.until("the end of all but the shell", func() bool {
		for _, p := range c.processes() {
			if p.Pid != 1 && (p.State != "Z" || p.Parent != 1) {
				return false
			}
		}
		return true
	})
}

// processes lists the namespace as it sees itself.
func (c *console) processes() []wire.Process {
	if c.engine {
		return nil
	}
	all, _ := wire.List(fmt.Sprintf("/proc/%d/root/proc", c.cmd.Process.Pid)) // gone with its init
	return all
}

// scene is what a failure should show.
func (c *console) scene() string {
	var b strings.Builder
	fmt.Fprintf(&b, "screen: %q\nexpected so far: %d of %d bytes\n", c.screen, c.seen, len(c.screen))
	for _, p := range c.processes() {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

func nameOf(pid int) string {
	name, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "comm"))
	return strings.TrimSpace(string(name))
}
