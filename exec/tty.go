package exec

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/sigwait"
)

// A terminal is the one on standard input, while foster's own group is or was
// its foreground group: then the command's group takes that place, so Ctrl-C,
// Ctrl-Z and the window size go to the command and not to foster.
type terminal struct {
	own   int // foster's process group
	state *unix.Termios
}

const ttyFD = 0

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// openTerminal returns nil where there is no terminal to hand on.
func openTerminal() *terminal {
	state, err := unix.IoctlGetTermios(ttyFD, unix.TCGETS)
	if err != nil {
		return nil
	}
	t := &terminal{own: unix.Getpgrp(), state: state}
	if t.foreground() != t.own {
		return nil // in the background, or not the controlling terminal
	}
	return t
}

func (t *terminal) foreground() int {
	pgid, err := unix.IoctlGetInt(ttyFD, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return pgid
}

// give makes pgid the foreground group.
func (t *terminal) give(pgid int) { _ = unix.IoctlSetPointerInt(ttyFD, unix.TIOCSPGRP, pgid) }

// close takes the terminal back from the group, or from one of its tree that
// is gone, and undoes the settings that a command left when it was killed: a
// program that ended by itself may have meant them, as stty(1) does.
func (t *terminal) close(pgid int, killed bool) {
	now := t.foreground()
	if now != pgid && unix.Kill(-now, 0) != unix.ESRCH {
		return // a shell above has moved on
	}
	t.give(t.own)
	if killed {
		_ = unix.IoctlSetTermios(ttyFD, unix.TCSETSW, t.state)
	}
}

// jobControl passes a stop from the terminal on to foster's own group, where a
// shell waits for it, and continues the command when the shell continues
// foster. Where no shell could (PID 1, an orphaned group) the kernel drops
// SIGTSTP, and the command goes on at once, as it would have without foster.
func (k *keeper) jobControl() {
	sig := k.reap.Stopped(k.pid)
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
	default:
		return
	}
	if k.tty.foreground() == k.pid {
		k.tty.give(k.tty.own)
	}
	if err := sigwait.Default(unix.SIGTSTP, func() { _ = unix.Kill(0, unix.SIGTSTP) }); err != nil {
		k.log.Warn("not stopped with the command", "error", err)
	}
	switch k.tty.foreground() {
	case k.tty.own:
		k.tty.give(k.pid)
	default:
		if sig != unix.SIGTSTP && orphaned() {
			k.log.Warn("command stopped: it wants a terminal that is another's", "command", k.res.Name)
			return // continued, it would only stop again, for ever
		}
	}
	k.warn(k.reap.Signal(-k.pid, unix.SIGCONT), unix.SIGCONT)
}

// orphaned reports whether nobody in the session could continue foster.
func orphaned() bool {
	mine, err := unix.Getsid(0)
	parents, err2 := unix.Getsid(os.Getppid())
	return err != nil || err2 != nil || mine != parents
}
