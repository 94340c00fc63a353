package supervisor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

// closers are descriptors that are the child's once it has been started.
type closers []int

func (c closers) close() {
	for _, fd := range c {
		_ = unix.Close(fd)
	}
}

func openNull() (int, error) {
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot open /dev/null: %w", err)
	}
	return fd, nil
}

// launch starts a run of the service, and what is to find out that it is ready.
func (sup *supervisor) launch(s *service, spec *exec.Spec) (*job, *readiness, error) {
	null, err := openNull()
	if err != nil {
		return nil, nil, err
	}
	theirs := closers{null}
	defer func() { theirs.close() }()
	stdio := exec.Stdio{In: null, Out: 1, Err: 2}
	if sup.hasStdin(s) {
		stdio.In = 0
	}
	switch s.Command.Log {
	case LogNull:
		stdio.Out, stdio.Err = null, null
	case LogPrefix, LogJSON:
		if stdio.Out, stdio.Err, err = sup.logs.open(s); err != nil {
			return nil, nil, err
		}
		theirs = append(theirs, stdio.Out, stdio.Err)
	}
	var check *readiness
	if s.Command.hasReadiness() {
		check = &readiness{s: s, fd: -1, conn: -1}
		if s.Command.ReadyFD > 0 {
			var pair [2]int
			if err := unix.Pipe2(pair[:], unix.O_CLOEXEC); err != nil {
				return nil, nil, fmt.Errorf("cannot open a pipe: %w", err)
			}
			check.fd, stdio.Ready, stdio.Number = pair[0], pair[1], int(s.Command.ReadyFD)
			theirs = append(theirs, pair[1])
		}
	}
	j, err := sup.startJob(spec, stdio)
	if err != nil && check != nil {
		check.done()
	}
	return j, check, err
}

// startHelper starts a probe or a PRE_STOP command, which nobody hears.
func (sup *supervisor) startHelper(spec *exec.Spec) (*job, error) {
	null, err := openNull()
	if err != nil {
		return nil, err
	}
	defer unix.Close(null)
	return sup.startJob(spec, exec.Stdio{In: null, Out: null, Err: null})
}

func (sup *supervisor) startJob(spec *exec.Spec, stdio exec.Stdio) (*job, error) {
	j := &job{}
	remote, err := exec.StartRemote(sup.reap, spec, stdio, sup.log, func() { j.gone = true })
	if err != nil {
		return nil, err
	}
	j.remote = remote
	sup.jobs = append(sup.jobs, j)
	return j, nil
}

// hasStdin reports whether the service reads foster's own standard input: the
// only command does, unless it says something else.
func (sup *supervisor) hasStdin(s *service) bool {
	return s.Command.Stdin == StdinInherit || sup.plan.alone() && !s.isSet("STDIN")
}

// prepareStdin lets go of standard input where no command has it.
func (sup *supervisor) prepareStdin() {
	for _, s := range sup.services {
		if sup.hasStdin(s) {
			return
		}
	}
	if null, err := openNull(); err == nil {
		_ = unix.Dup3(null, 0, unix.O_CLOEXEC)
		_ = unix.Close(null)
	}
}
