package exec

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
	"github.com/fosterinit/foster/reaper"
)

// A member is a process of the tree as one walk saw it.
type member struct {
	proc.Stat
	// direct: a child of this process. Nobody else can reap it, so its pid is
	// its own for as long as the reaper is held.
	direct bool
	pidfd  proc.Pidfd // where not direct and the kernel has pidfds, else negative
}

// signal sends sig to the process that the walk saw, never to a successor.
func (m member) signal(sig unix.Signal) error {
	var err error
	if m.pidfd >= 0 {
		err = m.pidfd.Signal(sig)
	} else {
		err = unix.Kill(m.Pid, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil // it has ended meanwhile
	}
	return err
}

// maxDepth bounds the descriptors that a walk holds at once. What is deeper
// comes within reach when its ancestors have been killed.
const maxDepth = 100

// A tree finds the descendants of this process.
//
// Children are trusted, since only this process can reap them. A process
// further down is tied to a pidfd first; then its parent must be the one it was
// found under, and that one must still be alive after it was asked: only then
// does the number mean, on both levels, the process that was looked at.
type tree struct {
	reap  *reaper.Reaper
	files *proc.Reader       // nil where there is no /proc of ours
	until time.Time          // when a walk breaks off; zero is never
	skip  func(pid int) bool // which children to leave out, with all below them; nil is none
	stack []int
}

func newTree(r *reaper.Reaper) (*tree, error) {
	files, err := proc.Open()
	return &tree{reap: r, files: files}, err
}

// walk calls visit for each descendant, parents before their children, while
// nothing is reaped. The children of a member for which visit returns false are
// left out.
func (t *tree) walk(visit func(member) (descend bool)) {
	t.reap.Hold(func() {
		if t.files != nil {
			t.files.Refresh()
			self := member{Stat: proc.Stat{Pid: os.Getpid()}, direct: true, pidfd: -1}
			if t.children(self, 0, visit) == nil {
				return
			}
		}
		reaper.EachChild(func(pid int) { visit(child(pid)) })
	})
}

// eachChild calls f with the pid of every child, dead or alive, while nothing is
// reaped. What /proc cannot say now, a walk will find.
func (t *tree) eachChild(f func(pid int)) {
	t.reap.Hold(func() {
		t.files.Refresh()
		t.stack, _ = t.files.Children(os.Getpid(), 0, t.stack[:0])
		for _, pid := range t.stack {
			f(pid)
		}
	})
}

func (t *tree) children(parent member, depth int, visit func(member) bool) error {
	base := len(t.stack)
	var err error
	t.stack, err = t.files.Children(parent.Pid, parent.Threads, t.stack)
	for i := base; i < len(t.stack) && !passed(t.until, time.Now()); i++ {
		if pid := t.stack[i]; depth > 0 || t.skip == nil || !t.skip(pid) {
			t.child(pid, parent, depth, visit)
		}
	}
	t.stack = t.stack[:base]
	return err
}

// child returns a child of which /proc says nothing.
func child(pid int) member {
	group, err := unix.Getpgid(pid)
	if err != nil {
		group = 0
	}
	return member{Stat: proc.Stat{Pid: pid, Parent: os.Getpid(), Group: group}, direct: true, pidfd: -1}
}

func (t *tree) child(pid int, parent member, depth int, visit func(member) bool) {
	m := member{direct: depth == 0, pidfd: -1}
	if !m.direct {
		fd, err := proc.OpenPidfd(pid)
		if errors.Is(err, unix.ESRCH) {
			return
		}
		if err == nil {
			m.pidfd = fd
			defer fd.Close()
		}
	}
	var ok bool
	m.Stat, ok = t.files.Stat(pid)
	switch {
	case m.direct && !ok:
		m = child(pid) // hidepid=2 hides the rest
	case m.direct:
	case !ok || m.Parent != parent.Pid || !parent.alive():
		return // gone, or given to another parent: the next walk meets it there
	}
	if visit(m) && !m.Dead() && depth < maxDepth {
		_ = t.children(m, depth+1, visit) // what it hides comes up when m has ended
	}
}

// alive reports whether the member still has its pid. A child of ours always
// has; without pidfds there is no better answer than that it had a moment ago.
func (m member) alive() bool {
	return m.pidfd < 0 || !errors.Is(m.pidfd.Signal(0), unix.ESRCH)
}
