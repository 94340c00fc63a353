package exec

import (
	"fmt"
	"io"
	"os"
)

// stdio are the descriptors 0, 1 and 2 of a command. child are to be closed when
// it has been started, ours when it could not be.
type stdio struct {
	fd    [3]*os.File
	child []*os.File
	ours  []*os.File
}

func (s *stdio) descriptors() []uintptr {
	return []uintptr{s.fd[0].Fd(), s.fd[1].Fd(), s.fd[2].Fd()}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (c *Cmd) openFiles() (s stdio, err error) {
	if err = c.openStdin(&s); err != nil {
		return s, err
	}
	if err = c.openOutput(&s, 1, c.Stdout); err != nil {
		return s, err
	}
	if sameWriter(c.Stdout, c.Stderr) {
		s.fd[2] = s.fd[1]
		return s, nil
	}
	err = c.openOutput(&s, 2, c.Stderr)
	return s, err
}

// sameWriter compares two writers; some types cannot be compared.
func sameWriter(a, b io.Writer) (same bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (c *Cmd) openStdin(s *stdio) error {
	if f, ok := c.Stdin.(*os.File); ok {
		s.fd[0] = f
		return nil
	}
	if c.Stdin == nil {
		return s.null(0, os.O_RDONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot open a pipe for stdin: %w", err)
	}
	s.fd[0], c.stdin = r, w
	s.child, s.ours = append(s.child, r), append(s.ours, w)
	return nil
}

func (c *Cmd) openOutput(s *stdio, fd int, to io.Writer) error {
	if f, ok := to.(*os.File); ok {
		s.fd[fd] = f
		return nil
	}
	if to == nil {
		return s.null(fd, os.O_WRONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot open a pipe for the output: %w", err)
	}
	s.fd[fd] = w
	s.child, s.ours = append(s.child, w), append(s.ours, r)
	c.output = append(c.output, newCopying(r, to))
	return nil
}

func (s *stdio) null(fd, flag int) error {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err != nil {
		return err
	}
	s.fd[fd] = f
	s.child = append(s.child, f)
	return nil
}
