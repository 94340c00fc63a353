package exec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/fdio"
)

// A keeper is this program again, with keeperName as its only argument and a
// stream socket as descriptor keeperFD. There it reads
//
//	the length of the Spec, 4 bytes big endian, and the Spec as JSON
//	then orders, a byte each: a signal to forward, orderStop, orderKill
//
// and writes started and ended as JSON. The end of the stream is the end of the
// caller, so it is an order to kill as well.
const (
	keeperName = "foster-keeper"
	keeperFD   = 3

	orderStop = 0x80
	orderKill = 0x81
)

// started and ended are what a keeper reports.
type started struct{ Pid int }

type ended struct {
	Result Result
	// Failure, Code and Hint are a StartError's, where there is one.
	Failure, Hint string
	Errno         unix.Errno
	Code          int
}

// A program that starts itself again as a keeper must not get as far as its own
// main, so this is not left to main to remember.
func init() {
	if len(os.Args) == 1 && os.Args[0] == keeperName {
		os.Exit(keeperMain())
	}
}

func keeperMain() int {
	if err := CatchSignals(); err != nil {
		return CodeFailed
	}
	spec, err := readSpec(socket(keeperFD))
	if err != nil {
		return CodeFailed // no caller, nobody to tell
	}
	out := json.NewEncoder(fdio.Writer{FD: keeperFD, Wait: time.Minute})
	res, err := Keep(spec, Options{
		Log:     slog.New(slog.DiscardHandler),
		KeepFDs: []int{keeperFD},
		Started: func(pid int) { _ = out.Encode(started{pid}) },
		control: keeperFD,
	})
	if err := out.Encode(newEnded(res, err)); err != nil {
		return CodeFailed
	}
	return 0
}

func newEnded(res *Result, err error) ended {
	e := ended{Result: *res}
	var failed *StartError
	if errors.As(err, &failed) {
		e.Failure, e.Hint, e.Code = failed.Error(), failed.Hint, failed.ExitCode
		errors.As(err, &e.Errno)
	} else if err != nil {
		e.Failure, e.Code = err.Error(), CodeFailed
	}
	return e
}

// err returns the error of Keep as the caller is to see it.
func (e *ended) err() error {
	if e.Failure == "" {
		return nil
	}
	return &StartError{e.Code, &remoteError{e.Failure, e.Errno}, e.Hint}
}

// A remoteError is an error that crossed a socket: its text and what a caller
// may branch on.
type remoteError struct {
	text  string
	errno unix.Errno
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// A wireSpec carries a Spec as JSON, which would change strings that are not
// UTF-8; arguments and environment may be any bytes.
type wireSpec struct {
	Spec
	Args, Env [][]byte
	Dir       []byte
}

func readSpec(r io.Reader) (*Spec, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	text := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	var w wireSpec
	err := json.Unmarshal(text, &w)
	w.Spec.Args, w.Spec.Env, w.Spec.Dir = texts(w.Args), texts(w.Env), string(w.Dir)
	return &w.Spec, err
}

func writeSpec(w io.Writer, spec *Spec) error {
	text, err := json.Marshal(wireSpec{Spec: *spec, Args: raw(spec.Args), Env: raw(spec.Env), Dir: []byte(spec.Dir)})
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

func raw(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// obey carries out what has come through the control socket.
func (k *keeper) obey() {
	buf := make([]byte, 64)
	n, err := unix.Read(k.opt.control, buf)
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return
	case err != nil || n <= 0:
		k.opt.control = -1
		k.kill(Stopped)
		return
	}
	for _, order := range buf[:n] {
		switch {
		case order == orderKill:
			k.kill(Stopped)
		case order == orderStop:
			k.stop(Stopped)
		case order > 0 && order <= 64:
			k.signal(unix.Signal(order))
		}
	}
}

// socket reads a descriptor with the plain system call; os.File would need the
// poller.
type socket int

func (s socket) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("cannot read: %w", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
