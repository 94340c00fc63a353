package exec

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/sigwait"
)

// A terminal is the controlling one. While the command's group has its
// foreground, Ctrl-C, Ctrl-Z and the window size go to the command and not to
// foster; while foster's own has it, foster forwards them.
type terminal struct {
	fd    int           // on which foster was given it, -1 if on none
	own   int           // foster's process group
	state *unix.Termios // at the start, nil without fd
}

const ttyFD = 0

// openTerminal finds the controlling terminal among the descriptors fds.
func openTerminal(fds ...int) *terminal {
	t := &terminal{fd: -1, own: unix.Getpgrp()}
	for _, fd := range fds {
		state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			continue
		}
		if t.fd = fd; t.foreground() >= 0 {
			t.state = state
			return t
		}
		t.fd = -1 // another session's
	}
	return t
}

// wanted reports whether the command is to have the foreground from its first
// instruction on: it reads the terminal, and foster's group, which has the
// foreground, is foster alone. In a pipeline it is not. There the other
// programs want their Ctrl-C too, and a pager the keyboard; the command gets
// the foreground when it asks for it.
func (t *terminal) wanted() bool {
	var st unix.Stat_t
	piped := unix.Fstat(1, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
	return t.fd == ttyFD && t.foreground() == t.own && !piped
}

// foreground returns the foreground group: 0 if it is in another PID namespace,
// -1 without a controlling terminal.
func (t *terminal) foreground() int {
	pgid, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return pgid
}

// give makes pgid the foreground group.
func (t *terminal) give(pgid int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, pgid) }

// close takes the terminal back from the group, or from one of its tree that
// is gone, and undoes the settings that a command left when it was killed: a
// program that ended by itself may have meant them, as stty(1) does.
func (t *terminal) close(pgid int, killed bool) {
	now := t.foreground()
	switch {
	case now <= 0:
		return
	case now == pgid || now > 1 && unix.Kill(-now, 0) == unix.ESRCH: // kill(-1) is no group: PID 1's is alive
		t.give(t.own)
	case now != t.own:
		return // a shell above has moved on
	}
	if killed {
		_ = unix.IoctlSetTermios(t.fd, unix.TCSETS, t.state)
	}
}

// jobControl passes a stop of the command on to foster's own group, where a
// shell waits for it. What the shell does next reaches the command as SIGCONT,
// which is forwarded.
func (k *keeper) jobControl() {
	sig := k.reap.Stopped(k.pid)
	if sig == 0 || k.phase != running { // nothing is to delay the end
		return
	}
	if t := *k.tty; t.fd >= 0 {
		k.stopped(&t, sig)
	} else if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
		t.fd = fd
		k.stopped(&t, sig)
		_ = unix.Close(fd)
	}
}

func (k *keeper) stopped(t *terminal, sig unix.Signal) {
	asks := sig == unix.SIGTTIN || sig == unix.SIGTTOU
	had := t.foreground() == k.pid
	switch {
	case asks && t.foreground() == t.own:
		// fg(1) of a job that ran, or a pipeline: foster has what it asks for.
		t.give(k.pid)
		k.continueGroup()
		return
	case had:
		t.give(t.own)
	}
	// Ctrl-Z reached all of the foreground group: foster's own, or only the command's.
	if err := stopSelf(had || sig != unix.SIGTSTP); err != nil {
		k.log.Warn("not stopped with the command", "error", err)
	}
	if t.foreground() == t.own && (had || asks) {
		t.give(k.pid)
	}
	// Where no shell could continue foster (PID 1, an orphaned group) the kernel
	// has dropped the stop, and the command goes on as it would have without
	// foster. After any other stop it waits for a SIGCONT.
	if sig == unix.SIGTSTP {
		k.continueGroup()
	}
}

func (k *keeper) continueGroup() { k.warn(k.reap.Signal(-k.pid, unix.SIGCONT), unix.SIGCONT) }

// stopSelf stops this process, and its group if asked to, as Ctrl-Z would. It
// returns when somebody has continued it. A signal for the process could be
// another thread's to take, some time later; one for this thread is taken
// before the system call returns.
func stopSelf(group bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if group {
		if err := sigwait.Ignoring(unix.SIGTSTP, func() { _ = unix.Kill(0, unix.SIGTSTP) }); err != nil {
			return err
		}
	}
	return sigwait.Default(unix.SIGTSTP, func() { _ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP) })
}
