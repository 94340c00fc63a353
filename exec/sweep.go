package exec

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/sigwait"
)

const (
	// sweepBound is how long a sweep goes on when nothing more ends, before it
	// reports survivors, and sweepLimit how long it goes on in any case: on a
	// machine that thousands keep busy the killing alone may take longer.
	sweepBound = 5 * time.Second
	sweepLimit = 30 * time.Second
	// rushBound is how long children may go on to appear before they are frozen.
	rushBound = 100 * time.Millisecond
	// patience is how long PID 1 tries to end the tree process by process,
	// before it freezes its namespace.
	patience = 50 * time.Millisecond
	// sweepPause is how long the killed are given to end before the next look;
	// it doubles up to sweepPauseMax. A process needs some 50 µs for it, a large
	// one more.
	sweepPause    = 10 * time.Millisecond
	sweepPauseMax = 100 * time.Millisecond
)

// A sweep kills the tree, until wait says that nothing is left of it. Every pass
// freezes the closure of all descendants, then kills it, then reaps. Killing
// without freezing loses against processes that fork for ever: at the limit of
// processes each SIGKILL frees a place that another fork takes, and a SIGSTOP
// frees none.
//
// A large tree is rushed first: children, and what become children when their
// parents have ended, are killed as they are found. Nobody else can reap them, so
// their pids need no proof, and a tree that does not fight back is gone as fast
// as the kernel can end it.
type sweep struct {
	k        *keeper
	bound    time.Time
	limit    time.Time
	patience time.Time // of PID 1
	frozen   bool      // the whole namespace is
	victim   map[int]victim
	direct   int           // how many victims are children that have not been reaped
	denied   map[int]error // what could not be signalled
}

// A victim has been stopped or killed.
type victim struct {
	start   uint64 // with the pid, which process it is; 0 if it was not asked
	direct  bool   // the pid is its own until it is reaped
	killed  bool   // it has had SIGKILL
	escaped bool   // it had left the main process's group
	// counted: it was seen alive, so what its status will say does not matter;
	// a parent that ignores SIGCHLD may keep it from being reaped here.
	counted bool
}

func (k *keeper) sweep() {
	k.phase = killing
	k.openTree()
	runAhead()
	k.log.Info("killing", "command", k.res.Name)
	now := time.Now()
	s := &sweep{
		k: k, bound: now.Add(sweepBound), limit: now.Add(sweepLimit), patience: now.Add(patience),
		victim: make(map[int]victim), denied: make(map[int]error),
	}
	k.victims, k.reaped = s, 0
	if s.large() && s.rush() {
		return
	}
	for pause := sweepPause; !s.pass(pause); pause = min(2*pause, sweepPauseMax) {
		now := time.Now()
		k.tree.skip = nil // when nobody ends, look everywhere
		if k.reaped > 0 {
			k.reaped, s.bound, k.tree.skip = 0, now.Add(sweepBound), s.dying
		}
		if passed(s.limit, now) || passed(s.bound, now) {
			k.tree.skip = nil
			k.res.Survivors = s.survivors()
			break
		}
	}
	if s.frozen {
		_ = unix.Kill(-1, unix.SIGCONT) // those that were not the command's
	}
}

// signalGroup sends sig to the group in one step, which no fork of a member
// slips through, as long as the main process holds its number.
func (s *sweep) signalGroup(sig unix.Signal) {
	if !s.k.ended {
		_ = s.k.reap.Signal(-s.k.pid, sig) // who cannot be signalled is named by a walk
	}
}

// largeTree is how many children make one: to freeze, look at and kill a process
// takes about as long as its end.
const largeTree = 64

// large reports whether the children of this process, and of the main process,
// are many.
func (s *sweep) large() bool {
	n := 0
	if s.k.tree.files != nil {
		s.k.tree.eachChild(func(int) { n++ })
		n += s.k.tree.files.CountChildren(s.k.pid)
	}
	return n > largeTree
}

// rush kills children as they appear, and reports whether the tree is empty. It
// gives up when they still do after rushBound.
func (s *sweep) rush() (empty bool) {
	s.k.lethal = true
	s.signalGroup(unix.SIGKILL)
	for until := time.Now().Add(rushBound); !passed(until, time.Now()); {
		s.k.tree.eachChild(func(pid int) {
			if v, ok := s.victim[pid]; ok && v.direct || s.denied[pid] != nil {
				return
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				s.deny(pid, err, unix.SIGKILL)
				return
			}
			group, err := unix.Getpgid(pid)
			s.add(pid, victim{direct: true, killed: true, escaped: err == nil && group != s.k.pid})
		})
		if s.reapFor(sweepPause) {
			return true
		}
	}
	return false
}

func (s *sweep) add(pid int, v victim) {
	if v.direct && !s.victim[pid].direct {
		s.direct++
	}
	s.victim[pid] = v
}

// reaped returns the victim that has been reaped, the zero one for a process
// that died with the group.
func (s *sweep) reaped(pid int) victim {
	v := s.victim[pid]
	if v.direct {
		s.direct--
	}
	delete(s.victim, pid)
	return v
}

// pass freezes, kills and reaps, and reports whether the tree is empty.
func (s *sweep) pass(pause time.Duration) (empty bool) {
	switch {
	case s.k.tree.files != nil:
		s.signalGroup(unix.SIGSTOP)
		s.freezeAll()
		s.kill()
	case os.Getpid() == 1:
		s.k.lethal = true
		_ = unix.Kill(-1, unix.SIGKILL) // nothing says what is whose
	default:
		s.kill() // children alone; theirs are children in the next pass
	}
	return s.reapFor(pause)
}

// freezeAll stops processes until a walk meets none that runs. PID 1 has a way
// to stop all others in one step, bystanders too; it takes it where the sweep
// does not come to an end soon, and continues them when the tree is empty.
func (s *sweep) freezeAll() {
	init := os.Getpid() == 1
	s.k.tree.until = time.Now().Add(sweepBound)
	if init {
		s.k.tree.until = s.patience
	}
	for fresh := 1; fresh > 0 && !s.frozen; {
		fresh = s.freeze()
		if passed(s.k.tree.until, time.Now()) { // the walk was broken off, and says nothing
			s.frozen = init && unix.Kill(-1, unix.SIGSTOP) == nil
			break
		}
	}
	s.k.tree.until = time.Time{}
}

// freeze stops every process that it has not met yet and returns how many those
// were. When there are none, whatever is left in the tree stands still.
func (s *sweep) freeze() (fresh int) {
	s.k.walk(func(m member) {
		if _, known := s.known(m); known || s.denied[m.Pid] != nil {
			return
		}
		fresh++
		if err := m.signal(unix.SIGSTOP); err != nil {
			s.deny(m.Pid, err, unix.SIGSTOP)
			return
		}
		s.add(m.Pid, s.seen(m))
	})
	return fresh
}

// seen counts a living process as killed, which it is about to be.
func (s *sweep) seen(m member) victim {
	v := victim{start: m.StartTime, direct: m.direct, escaped: m.Group != s.k.pid, counted: true}
	s.k.countKilled(v)
	return v
}

// kill sends SIGKILL to everything in the tree.
func (s *sweep) kill() {
	s.k.lethal = true
	s.k.walk(func(m member) {
		v, known := s.known(m)
		if err := m.signal(unix.SIGKILL); err != nil {
			s.deny(m.Pid, err, unix.SIGKILL)
			return
		}
		if !known {
			v = s.seen(m)
		}
		v.killed, v.direct = true, m.direct
		s.add(m.Pid, v)
	})
}

// dying reports whether a child has had SIGKILL. Its end is only to be waited
// for, and what is below it comes up then.
func (s *sweep) dying(pid int) bool {
	v := s.victim[pid]
	return v.direct && v.killed
}

// deny remembers what could not be signalled, and says so once.
func (s *sweep) deny(pid int, err error, sig unix.Signal) {
	if s.denied[pid] == nil {
		s.k.warn(err, sig)
	}
	s.denied[pid] = err
}

func (s *sweep) known(m member) (victim, bool) {
	v, ok := s.victim[m.Pid]
	return v, ok && (v.direct || v.start == m.StartTime)
}

// reapFor reaps until nothing is left to be, or the pause is over.
func (s *sweep) reapFor(pause time.Duration) (empty bool) {
	until := time.Now().Add(pause)
	before := s.k.reaped
	for {
		s.k.drain(until)
		all := s.direct == 0 && s.k.ended && s.k.reaped > before
		if s.k.empty || all || passed(until, time.Now()) {
			return s.k.empty
		}
		sigwait.Wait(until, -1) // SIGCHLD; all else has come too late
	}
}
