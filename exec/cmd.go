// Package exec runs one command from its start to the proven end of every
// process that came of it, wherever that hid: another process group, another
// session, a double fork, a cleared environment, another user.
//
// It differs from os/exec in what the end is. A command has ended when no
// descendant of it is left, so [Cmd.Wait] never waits for a pipe that a
// forgotten child holds, and a deadline or a context that ends reaches all of
// them. For that each command gets a keeper, a process that is the subreaper of
// this command alone: the program's own binary, started again through
// /proc/self/exe and taken over by this package before main runs. Init functions
// of packages that are initialised before this one do run there, so they should
// do no more than initialise.
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/sigwait"
	"github.com/fosterinit/foster/reaper"
)

// Cmd is a command to be run once by a program that goes on. The fields are set
// before Start and not changed after it. Stop, Kill and Signal may be called
// from any goroutine between Start and the return of Wait.
type Cmd struct {
	Spec

	// Stdin, Stdout and Stderr: nil is /dev/null, an *os.File is handed over as
	// it is, anything else is served through a pipe by a goroutine of its own.
	// The same writer as Stdout and Stderr is served by one. Wait does not wait
	// for a Read of Stdin that blocks.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	keeper int // pid

	mu      sync.Mutex  // orders signals to the keeper before its end
	running bool        // Start has returned nil
	gone    bool        // the keeper has been reaped
	waker   *time.Timer // see wake

	conn   *os.File // to the keeper
	in     *json.Decoder
	pid    int
	failed *ended          // set where the command never ran
	output []*copying      // one for each pipe that is read
	stdin  *os.File        // our end, if there is a pipe
	ctx    context.Context //nolint:containedctx // ends with the run that it was given for
	off    func() bool     // stops watching ctx
}

// Command returns the Cmd to run name with args, with a grace period of
// DefaultGracePeriod and no deadline.
func Command(name string, args ...string) *Cmd {
	return &Cmd{Spec: Spec{Args: append([]string{name}, args...), GracePeriod: DefaultGracePeriod}}
}

// Run starts the command and waits for the end of its tree.
func (c *Cmd) Run(ctx context.Context) (*Result, error) {
	if err := c.Start(ctx); err != nil {
		var failed *StartError
		if c.failed != nil && errors.As(err, &failed) {
			return &c.failed.Result, err
		}
		return nil, err
	}
	return c.Wait()
}

// Start starts the command and returns when it runs; its Timeout counts from
// here. When ctx ends, the whole tree is killed at once, without grace.
//
// The error is a *StartError if the command could not be started; nothing is
// left to be waited for then.
func (c *Cmd) Start(ctx context.Context) error {
	if c.keeper != 0 {
		return errors.New("cannot start a command twice")
	}
	if len(c.Args) == 0 || c.Args[0] == "" {
		return &StartError{CodeFailed, errNoName, ""}
	}
	if c.Timeout < 0 {
		return &StartError{CodeFailed, fmt.Errorf("cannot run for %v", c.Timeout), ""}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	files, err := c.openFiles()
	if err == nil {
		err = c.startKeeper(files)
	}
	closeAll(files.child)
	if err != nil {
		closeAll(files.ours)
		return &StartError{CodeFailed, err, ""}
	}
	c.ctx = ctx
	c.off = context.AfterFunc(ctx, c.cancel)
	c.sendSpec()
	for _, o := range c.output {
		go o.run() // ends with the pipe, or when Wait closes it
	}
	if c.stdin != nil {
		go func() { // ends when Stdin does or when the command no longer reads
			_, _ = io.Copy(c.stdin, c.Stdin)
			c.stdin.Close()
		}()
	}
	if err := c.awaitStart(); err != nil {
		c.off()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = true
	if c.Timeout > 0 {
		c.waker = time.AfterFunc(c.Timeout, c.wake)
	}
	return nil
}

// cancel ends the run because ctx has. A command that does not get as far as
// running, on a file system that does not answer, has a keeper that does not
// listen.
func (c *Cmd) cancel() {
	time.AfterFunc(sweepBound, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.running && !c.gone {
			_ = unix.Kill(c.keeper, unix.SIGKILL)
			_ = c.conn.SetReadDeadline(time.Now()) // what it was forking may hold the other end
		}
	})
	_ = c.Kill()
}

// wake continues the keeper, which a command of the same user can stop, from the
// time on when it has something to do, until it has done it.
func (c *Cmd) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.keeper == 0 {
		return
	}
	_ = unix.Kill(c.keeper, unix.SIGCONT)
	if c.waker != nil {
		c.waker.Stop()
	}
	c.waker = time.AfterFunc(wakeEvery, c.wake)
}

const wakeEvery = 100 * time.Millisecond

// startKeeper starts the keeper, which waits for the Spec.
func (c *Cmd) startKeeper(files stdio) error {
	pid, conn, err := forkKeeper(files.descriptors())
	if err != nil {
		return err
	}
	_ = unix.SetNonblock(conn, true) // NewFile looks at it, for the deadlines; it cannot fail
	c.keeper = pid
	c.conn = os.NewFile(uintptr(conn), "keeper")
	c.in = json.NewDecoder(c.conn)
	return nil
}

func (c *Cmd) sendSpec() {
	spec := wireSpec{Spec: c.Spec}
	spec.Spec.Env = c.environ()
	// A keeper that could not read it is noticed by awaitStart.
	_ = writeSpec(c.conn, &spec)
}

// forkKeeper starts a keeper with these descriptors and returns our end of its
// socket, which comes after 0, 1 and 2.
func forkKeeper(files []uintptr) (pid, conn int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, -1, fmt.Errorf("cannot open a socket for the keeper: %w", err)
	}
	defer unix.Close(pair[1])
	files = slices.Insert(slices.Clone(files), keeperFD, uintptr(pair[1]))
	pid, err = syscall.ForkExec("/proc/self/exe", []string{keeperName}, &syscall.ProcAttr{
		Env:   os.Environ(), // for the init functions of the program's packages
		Files: files,
		// Out of the group that a terminal's Ctrl-C goes to.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		_ = unix.Close(pair[0])
		return 0, -1, fmt.Errorf("cannot start the keeper (this program again, through /proc/self/exe): %w", err)
	}
	return pid, pair[0], nil
}

func (c *Cmd) awaitStart() error {
	m, err := c.receive()
	if err != nil {
		return c.abandon(&StartError{CodeFailed, fmt.Errorf("cannot start the keeper: %w", c.keeperError(err)), ""})
	}
	if m.Ended != nil {
		c.failed = m.Ended
		return c.abandon(c.failed.err())
	}
	c.pid = m.Started
	return nil
}

// receive returns what the keeper says next of the run; its log is nobody's.
func (c *Cmd) receive() (m message, err error) {
	for m == (message{}) && err == nil {
		err = c.in.Decode(&m)
		m.Record = nil
	}
	return m, err
}

// abandon cleans up after a command that never ran.
func (c *Cmd) abandon(err error) error {
	_ = c.reapKeeper()
	c.release(time.Now().Add(outputBound))
	return err
}

// keeperError says how the keeper ended, where it ended too early.
func (c *Cmd) keeperError(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return errors.New("it ended too early: somebody killed it, or there was no process or memory to be had")
}

// Pid returns the pid of the main process, once Start has returned nil.
func (c *Cmd) Pid() int { return c.pid }

// outputBound is how long Wait reads on from a pipe that somebody outside the
// tree, or a survivor, keeps open after the end.
const outputBound = time.Second

// Wait returns when the tree of the command is empty, or what is left of it is
// in Result.Survivors, and its output has been read and written: it waits for a
// Write to Stdout or Stderr however long that takes. It is called once.
//
// The error is nil whatever the exit code. It is ctx's if that ended the main process;
// the Result, and the output up to then, are complete nevertheless. Where the
// keeper was killed there is an error and no Result: its processes are init's.
// A command of the same user can stop its keeper; without a Timeout Wait then
// lasts until Stop, Kill or the end of ctx.
func (c *Cmd) Wait() (*Result, error) {
	if c.in == nil || c.pid == 0 {
		return nil, errors.New("cannot wait for a command that was not started")
	}
	m, err := c.receive()
	for err == nil && m.Ended == nil {
		m, err = c.receive()
	}
	cancelled := !c.off()
	if werr := c.reapKeeper(); err == nil {
		err = werr
	}
	c.release(time.Now().Add(outputBound))
	if err != nil {
		return nil, fmt.Errorf("cannot learn how the command ended: %w", c.keeperError(err))
	}
	if cancelled && m.Ended.Result.Reason == Stopped {
		return &m.Ended.Result, c.ctx.Err()
	}
	return &m.Ended.Result, m.Ended.err()
}

// reapKeeper waits for the keeper's end. Until that it can be signalled, and has
// to be if somebody has stopped it; from the moment it is reaped it cannot.
func (c *Cmd) reapKeeper() error {
	err := reaper.Await(c.keeper)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.waker != nil {
		c.waker.Stop()
	}
	if err == nil {
		_, err = reaper.Wait(c.keeper)
	}
	if errors.Is(err, unix.ECHILD) {
		return nil // the program ignores SIGCHLD or waits for everything
	}
	return err
}

// release ends what serves the run: the pipes and the connection.
func (c *Cmd) release(until time.Time) {
	if c.stdin != nil {
		c.stdin.Close()
	}
	for _, o := range c.output {
		o.finish(until)
	}
	c.conn.Close()
}

// Stop sends the stop signal to the signal target; what is left when the grace
// period has passed is killed. It returns at once.
func (c *Cmd) Stop() error {
	c.wake()
	return c.order(orderStop)
}

// Kill kills the whole tree. It returns at once.
func (c *Cmd) Kill() error {
	c.wake()
	return c.order(orderKill)
}

// Signal sends sig to the signal target.
func (c *Cmd) Signal(sig unix.Signal) error {
	if sig < 1 || sig > sigwait.Last {
		return unix.EINVAL
	}
	return c.order(byte(sig))
}

func (c *Cmd) order(b byte) error {
	if c.conn == nil {
		return errors.New("cannot signal a command that was not started")
	}
	// A keeper that does not read has been stopped: what is asked of it beyond
	// what the socket holds is refused.
	_ = c.conn.SetWriteDeadline(time.Now().Add(orderBound))
	_, err := c.conn.Write([]byte{b})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("cannot reach the keeper: %w", err)
	case err != nil:
		return os.ErrProcessDone
	}
	return nil
}

// orderBound is how long a keeper may take to make room for an order.
const orderBound = time.Second
