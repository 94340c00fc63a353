package exec

import (
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/reaper"
)

// markBase is an unlikely RLIMIT_LOCKS. The kernel enforces no such limit (since
// 2.4.25, getrlimit(2)), but hands it down to every descendant and shows it to
// everyone.
const markBase = 7071 << 10

// Mark returns the RLIMIT_LOCKS of Remote commands, which tells their processes
// from strays should both fall to this process: a lower one than its own, also
// where it is a command of a foster itself. Only a process with CAP_SYS_RESOURCE
// can raise it again, so it is a mark and no boundary.
func Mark() uint64 {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_LOCKS, &own) != nil || own.Max > markBase || own.Max < 2 {
		return markBase
	}
	return own.Max - 1
}

// Fallen ends the trees of keepers that died, which have fallen to this process.
type Fallen struct {
	reap *reaper.Reaper
	tree *tree
	log  *slog.Logger
}

// NewFallen returns what ends trees in a process that reaps with reap.
func NewFallen(reap *reaper.Reaper, log *slog.Logger) *Fallen { return &Fallen{reap: reap, log: log} }

// Pass freezes and kills what there is of them and returns how many processes
// that were. When there are none, the trees are gone once what was killed has
// been reaped. Strays and what lives below a keeper are left alone.
func (f *Fallen) Pass(isKeeper func(pid int) bool) (alive int) {
	if f.tree == nil {
		var err error
		if f.tree, err = newTree(f.reap); err != nil {
			f.log.Warn("/proc is of no use: what a keeper left cannot be told from strays", "error", err)
		}
	}
	if f.tree.files == nil {
		return 0
	}
	for f.each(isKeeper, unix.SIGSTOP) > alive { // until nobody is new
		alive = f.each(isKeeper, unix.SIGSTOP)
	}
	return f.each(isKeeper, unix.SIGKILL)
}

func (f *Fallen) each(isKeeper func(pid int) bool, sig unix.Signal) (n int) {
	own := f.tree.files.LockLimit(os.Getpid())
	f.tree.walk(func(m member) bool {
		if m.direct && (isKeeper(m.Pid) || f.tree.files.LockLimit(m.Pid) == own) {
			return false
		}
		if !m.Dead() {
			n++
			_ = m.signal(sig) // who may not be signalled is counted until the caller gives up
		}
		return true
	})
	return n
}
