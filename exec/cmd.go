// Package exec runs one command from its start to the proven end of every
// process that came of it, wherever that hid: another process group, another
// session, a double fork, a cleared environment, another user.
//
// It differs from os/exec in what the end is. A command has ended when no
// descendant of it is left, so [Cmd.Wait] never waits for a pipe that a
// forgotten child holds, and a deadline or a context that ends reaches all of
// them. For that each command gets a keeper, a process that is the subreaper of
// this command alone: the program's own binary, started again through
// /proc/self/exe and taken over by this package before main runs.
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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

	keeper int        // pid
	mu     sync.Mutex // orders signals to the keeper before its end
	gone   bool       // the keeper has been reaped
	conn   *os.File   // to the keeper
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
		return &StartError{CodeFailed, errors.New("cannot start a command without a name"), ""}
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
	for _, o := range c.output {
		go o.run() // ends with the pipe, or when Wait closes it
	}
	if err := c.awaitStart(); err != nil {
		return err
	}
	c.ctx = ctx
	c.off = context.AfterFunc(ctx, func() { _ = c.Kill() })
	return nil
}

// startKeeper starts the keeper and sends it the Spec.
func (c *Cmd) startKeeper(files stdio) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open a socket for the keeper: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "keeper")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return fmt.Errorf("cannot set up the keeper's socket: %w", err)
	}
	c.conn = os.NewFile(uintptr(pair[0]), "keeper")
	c.in = json.NewDecoder(c.conn)
	c.keeper, err = syscall.ForkExec("/proc/self/exe", []string{keeperName}, &syscall.ProcAttr{
		Env:   []string{},
		Files: append(files.descriptors(), uintptr(pair[1])),
		// Out of the group that a terminal's Ctrl-C goes to.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		c.conn.Close()
		return fmt.Errorf("cannot start the keeper (this program again, through /proc/self/exe): %w", err)
	}
	spec := c.Spec
	if spec.Env == nil {
		spec.Env = os.Environ()
	}
	// A keeper that could not read it is noticed by awaitStart.
	_ = writeSpec(c.conn, &spec)
	return nil
}

func (c *Cmd) awaitStart() error {
	var first struct {
		started
		ended
	}
	if err := c.in.Decode(&first); err != nil {
		return c.abandon(&StartError{CodeFailed, fmt.Errorf("cannot start the keeper: %w", c.keeperError(err)), ""})
	}
	if first.started.Pid == 0 {
		c.failed = &first.ended
		return c.abandon(c.failed.err())
	}
	c.pid = first.started.Pid
	return nil
}

// abandon cleans up after a command that never ran.
func (c *Cmd) abandon(err error) error {
	_, _ = reaper.Wait(c.keeper)
	c.release(time.Now().Add(outputBound))
	return err
}

// keeperError says how the keeper ended, where it ended too early.
func (c *Cmd) keeperError(err error) error {
	if !errors.Is(err, io.EOF) {
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
// in Result.Survivors, and its output has been read. It is called once.
//
// The error is nil whatever the exit code. It is ctx's if that ended the run;
// the Result, and the output up to then, are complete nevertheless. Where the
// keeper was killed there is an error and no Result: its processes are init's.
func (c *Cmd) Wait() (*Result, error) {
	if c.in == nil || c.pid == 0 {
		return nil, errors.New("cannot wait for a command that was not started")
	}
	var e ended
	err := c.in.Decode(&e)
	c.off()
	c.mu.Lock()
	if _, werr := reaper.Wait(c.keeper); err == nil && werr != nil && !errors.Is(werr, unix.ECHILD) {
		err = werr // ECHILD: the program ignores SIGCHLD or waits for everything
	}
	c.gone = true
	c.mu.Unlock()
	c.release(time.Now().Add(outputBound))
	if err != nil {
		return nil, fmt.Errorf("cannot learn how the command ended: %w", c.keeperError(err))
	}
	if ctxErr := c.ctx.Err(); ctxErr != nil && e.Result.Reason == Stopped {
		return &e.Result, ctxErr
	}
	return &e.Result, e.err()
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
func (c *Cmd) Stop() error { return c.order(orderStop) }

// Kill kills the whole tree. It returns at once.
func (c *Cmd) Kill() error { return c.order(orderKill) }

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
	if _, err := c.conn.Write([]byte{b}); err != nil {
		return os.ErrProcessDone
	}
	c.mu.Lock() // until it is reaped the pid is the keeper's
	defer c.mu.Unlock()
	if !c.gone {
		_ = unix.Kill(c.keeper, unix.SIGCONT) // the command may have stopped it
	}
	return nil
}

// copying reads one pipe into a writer.
type copying struct {
	from *os.File
	to   io.Writer
	done sync.WaitGroup
}

func newCopying(from *os.File, to io.Writer) *copying {
	o := &copying{from: from, to: to}
	o.done.Add(1)
	return o
}

func (o *copying) run() {
	defer o.done.Done()
	_, err := io.Copy(o.to, o.from)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.rest()
	} else if err != nil {
		// The writer failed: the command is not to wait for a full pipe.
		_, _ = io.Copy(io.Discard, o.from)
	}
}

// rest copies what is in the pipe now and waits for no more.
func (o *copying) rest() {
	_ = o.from.SetReadDeadline(time.Time{})
	conn, err := o.from.SyscallConn()
	buf := make([]byte, 32<<10)
	for n := 1; n > 0 && err == nil; {
		err = conn.Read(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), buf)
			return true
		})
		if n > 0 {
			_, err = o.to.Write(buf[:n])
		}
	}
}

func (o *copying) finish(until time.Time) {
	_ = o.from.SetReadDeadline(until)
	o.done.Wait()
	o.from.Close()
}
