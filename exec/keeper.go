package exec

import (
	"context"
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
// and writes messages as JSON, a line each. The end of the stream is the end of
// the caller, so it is an order to kill as well.
const (
	keeperName = "foster-keeper"
	keeperFD   = 3
	readyFD    = 4 // where the Spec has a ReadyFD: the descriptor that the command gets as that

	orderStop     = 0x80
	orderKill     = 0x81
	orderDeadline = 0x82 // stop, because the deadline has passed
)

// A message is what a keeper has to say, one of these.
type message struct {
	Started int     `json:",omitempty"` // the pid of the main process
	Ended   *ended  `json:",omitempty"`
	Record  *record `json:",omitempty"`
}

// ended is the end of a run.
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
	opt := Options{
		Log:     slog.New(&recorder{out: out}),
		KeepFDs: []int{keeperFD},
		Started: func(pid int) { _ = out.Encode(message{Started: pid}) },
	}
	if spec.ReadyFD > 0 {
		opt.passAs = map[int]int{spec.ReadyFD: readyFD}
	}
	if spec.Mark > 0 {
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: spec.Mark, Max: spec.Mark})
	}
	res, err := keep(&spec.Spec, opt, keeperFD)
	if err := out.Encode(message{Ended: newEnded(res, err)}); err != nil {
		return CodeFailed
	}
	return 0
}

func newEnded(res *Result, err error) *ended {
	e := &ended{Result: *res}
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
	ReadyFD   int    // of the command; 0 is none
	Mark      uint64 // see Mark; 0 is none
}

func readSpec(r io.Reader) (*wireSpec, error) {
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
	return &w, err
}

func writeSpec(w io.Writer, spec *wireSpec) error {
	spec.Args, spec.Env, spec.Dir = raw(spec.Spec.Args), raw(spec.Spec.Env), []byte(spec.Spec.Dir)
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// A record is what a keeper would have logged.
type record struct {
	Level   slog.Level
	Message string
	Attrs   []string // name, value, name, value
}

// recorder sends the log to the caller: a keeper has nobody else to tell.
type recorder struct{ out *json.Encoder }

func (r *recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r *recorder) WithGroup(string) slog.Handler                    { return r }

func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	m := record{Level: rec.Level, Message: rec.Message}
	rec.Attrs(func(a slog.Attr) bool {
		m.Attrs = append(m.Attrs, a.Key, a.Value.String())
		return true
	})
	return r.out.Encode(message{Record: &m})
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
	n, err := unix.Read(k.control, buf)
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return
	case err != nil || n <= 0:
		k.control = -1
		k.kill(Stopped)
		return
	}
	for _, order := range buf[:n] {
		switch {
		case order == orderKill:
			k.kill(Stopped)
		case order == orderStop:
			k.stop(Stopped)
		case order == orderDeadline:
			k.stop(DeadlineExceeded)
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
