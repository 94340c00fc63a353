package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// The keys that a terminal turns into signals and an end of file.
const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// prompt is what the shells under test are told to print: it occurs in no output of theirs.
const prompt = "% "

// A console is a pseudo-terminal, the programs on it and the user in front of it. They live in a PID namespace of their
// own, whose end is theirs too.
type console struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd // the namespace's init
	output chan string
	done   chan struct{} // closed when nobody looks at the screen any more
	screen string        // all that has appeared so far
	seen   int           // how much of it has been expected
	foster bool          // foster is there; else the same is played without
	name   string        // of the place
	engine bool          // the programs are in a container
	before unix.Termios  // the terminal's settings when nobody had touched them
}

// openConsole runs argv as the init of a PID namespace, and as the leader of the terminal's session unless its first
// word makes another process that.
func openConsole(t *testing.T, env []string, argv ...string) *console {
	t.Helper()
	master, slave := openPty(t)
	c := &console{t: t, master: master, output: make(chan string, 64), done: make(chan struct{})}
	c.cmd = exec.Command(nstest.Helper(t), append([]string{"ns", "{}"}, argv...)...)
	c.cmd.Dir = "/"
	c.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PS1=" + prompt, "TERM=dumb", "LC_ALL=C"}, env...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = newNamespace()
	c.cmd.SysProcAttr.Setsid, c.cmd.SysProcAttr.Setctty = true, argv[0] != asLeader[0]
	return c.start(slave)
}

func newNamespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

func (c *console) start(slave *os.File) *console {
	c.t.Helper()
	c.before = c.settings()
	err := c.cmd.Start()
	_ = slave.Close() // the master reads an error when the last program has let go
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		nstest.Skip(c.t, fmt.Sprintf("no namespaces: %v", err))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	go c.look() // ends with the programs, or when the test does
	c.t.Cleanup(func() {
		close(c.done)
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		_ = c.master.Close()
	})
	return c
}

// openPty makes a terminal of 24 lines and 80 columns.
func openPty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		nstest.Skip(t, "no pseudo-terminals: "+err.Error())
	}
	c := &console{t: t, master: master}
	number := 0
	c.control(func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	c.resize(24, 80)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// control runs f on the master's descriptor. The kernel answers there for the terminal behind it.
func (c *console) control(f func(fd int) error) {
	c.t.Helper()
	raw, err := c.master.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) { err = f(int(fd)) }), err)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) resize(rows, columns uint16) {
	c.t.Helper()
	c.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
}

// settings are the terminal's.
func (c *console) settings() (s unix.Termios) {
	c.t.Helper()
	c.control(func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			s = *got
		}
		return err
	})
	return s
}

// foreground is the terminal's foreground group, as the test's own /proc numbers it.
func (c *console) foreground() (pgid int) {
	c.t.Helper()
	c.control(func(fd int) (err error) {
		pgid, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return pgid
}

// look hands on what the programs print.
func (c *console) look() {
	defer close(c.output)
	for chunk := make([]byte, 4096); ; {
		n, err := c.master.Read(chunk)
		if n > 0 {
			select {
			case c.output <- string(chunk[:n]):
			case <-c.done:
				return
			}
		}
		if err != nil { // EIO when nobody has the terminal open any more
			return
		}
	}
}

func (c *console) enter(keys string) *console {
	c.t.Helper()
	if _, err := io.WriteString(c.master, keys); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// expect waits until the text appears after what was expected before.
func (c *console) expect(text string) *console {
	c.t.Helper()
	for late := time.After(nstest.Patience); ; {
		if i := strings.Index(c.screen[c.seen:], text); i >= 0 {
			c.seen += i + len(text)
			return c
		}
		select {
		case chunk, more := <-c.output:
			if c.screen += chunk; !more {
				c.t.Fatalf("ended before %q appeared\n%s", text, c.scene())
			}
		case <-late:
			c.t.Fatalf("%q never appeared\n%s", text, c.scene())
		}
	}
}

// expects waits for several texts, one after the other.
func (c *console) expects(texts ...string) *console {
	c.t.Helper()
	for _, text := range texts {
		c.expect(text)
	}
	return c
}

// ends waits for the end of all that runs on the terminal and wants this exit code. What is printed right before may be
// lost: the end of its session hangs a terminal up. So programs under test print, then wait for a key, then end.
func (c *console) ends(code int) *console {
	c.t.Helper()
	for late := time.After(nstest.Patience); ; {
		select {
		case chunk, more := <-c.output:
			if c.screen += chunk; more {
				continue
			}
		case <-late:
			c.t.Fatalf("did not end\n%s", c.scene())
		}
		break
	}
	_ = c.cmd.Wait()
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.t.Errorf("ended with %v, want %d\n%s", c.cmd.ProcessState, code, c.scene())
	}
	return c
}
