package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/fdio"
)

// Paint returns what stands before each line of a command's output on descriptor
// fd, 1 or 2: its name, coloured where that is a terminal. index is the command's
// place in the start order.
type Paint func(name string, index, fd int) string

// logs passes on the output of commands with LOG=prefix or json, line by line,
// from pipes to descriptors 1 and 2. Nothing is read that cannot be written yet:
// a command waits for a slow reader as it would without foster.
type logs struct {
	paint   Paint
	out     [2]sink // descriptors 1 and 2
	streams []*stream
	buf     []byte
	list    []source
}

const (
	// lineMax is the longest line that is passed on whole, in bytes; what is longer
	// becomes several.
	lineMax = 1 << 20
	// readSize is how much is read at once, and sinkMax how much may wait for a
	// reader before no more is read.
	readSize = 64 << 10
	sinkMax  = 64 << 10
)

func newLogs(paint Paint) *logs {
	l := &logs{paint: paint}
	for i := range l.out {
		l.out[i] = sink{fd: i + 1, size: chunk(i + 1)}
		l.out[i].pipe, _ = unix.FcntlInt(uintptr(i+1), unix.F_GETPIPE_SZ, 0) // an error for what is none
	}
	return l
}

// chunk is how many bytes may be written at once: a file never blocks.
func chunk(fd int) int {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		return readSize
	}
	return fdio.AtOnce(fd)
}

// open returns the descriptors that a run of the service writes to, which are the
// caller's to close.
func (l *logs) open(s *service) (out, err int, failure error) {
	var fds [2]int
	for i := range fds {
		var pair [2]int
		if e := unix.Pipe2(pair[:], unix.O_CLOEXEC); e != nil {
			if i > 0 {
				_ = unix.Close(fds[0])
			}
			return -1, -1, fmt.Errorf("cannot open a pipe for the output: %w", e)
		}
		// Only our end: the command's blocks, as it expects.
		_ = unix.SetNonblock(pair[0], true)
		fds[i] = pair[1]
		st := &stream{logs: l, of: s, fd: pair[0], to: &l.out[i]}
		if s.Command.Log == LogPrefix {
			st.prefix = []byte(l.paint(s.Name, s.index, i+1))
		}
		l.streams = append(l.streams, st)
	}
	return fds[0], fds[1], nil
}

// end says that a run is over: what its pipes hold is still passed on, what
// somebody outside its tree goes on to write is not.
func (l *logs) end(s *service) {
	for _, st := range l.streams {
		st.last = st.last || st.of == s
	}
}

// sources returns what is to be waited for.
func (l *logs) sources() []source {
	l.list = l.list[:0]
	for _, st := range l.streams {
		if st.last && !st.to.full() {
			st.ready() // there may be nothing that wakes us any more
		}
	}
	l.streams = slices.DeleteFunc(l.streams, func(st *stream) bool { return st.fd < 0 })
	for _, st := range l.streams {
		l.list = append(l.list, st)
	}
	for i := range l.out {
		l.list = append(l.list, &l.out[i])
	}
	return l.list
}

// finish passes on what is left. A reader that takes nothing for patience is
// given up.
func (l *logs) finish() {
	const patience = 5 * time.Second
	for _, st := range l.streams {
		st.last = true
	}
	for {
		l.sources()
		fds := make([]unix.PollFd, 0, len(l.out))
		for i := range l.out {
			if len(l.out[i].buf) > 0 {
				fds = append(fds, unix.PollFd{Fd: int32(l.out[i].fd), Events: unix.POLLOUT})
			}
		}
		if len(fds) == 0 {
			return // and nothing is left in the pipes: only a full sink is not read for
		}
		n, err := unix.Poll(fds, int(patience.Milliseconds()))
		if err != nil && err != unix.EINTR || err == nil && n == 0 {
			return
		}
		for i := range l.out {
			l.out[i].ready()
		}
	}
}

// A sink is a descriptor of foster's own that lines are written to.
type sink struct {
	fd   int
	size int // of one write
	pipe int // what a pipe holds, -1 if it is none
	buf  []byte
	dead bool // nobody reads it any more
}

func (k *sink) full() bool { return len(k.buf) >= sinkMax }

func (k *sink) interest() (int, int16) {
	if len(k.buf) == 0 {
		return -1, 0
	}
	return k.fd, unix.POLLOUT
}

// ready writes what can be written without waiting.
func (k *sink) ready() {
	done := 0
	fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLOUT}}
	for done < len(k.buf) {
		if n, err := unix.Poll(fds, 0); err == unix.EINTR {
			continue
		} else if err != nil || n == 0 {
			break
		}
		n, err := unix.Write(k.fd, whole(k.buf[done:], k.room()))
		if err == unix.EINTR || err == unix.EAGAIN {
			break
		}
		if err != nil {
			k.dead, k.buf = true, nil
			return
		}
		done += n
	}
	k.buf = k.buf[:copy(k.buf, k.buf[done:])]
	if len(k.buf) == 0 && cap(k.buf) > 8*sinkMax {
		k.buf = nil // a long line is no reason to keep so much
	}
}

// room is how many bytes a descriptor that can be written to takes at once: a pipe
// that is empty all that it holds.
func (k *sink) room() int {
	if k.pipe > k.size {
		if waiting, err := unix.IoctlGetInt(k.fd, unix.TIOCINQ); err == nil && waiting == 0 {
			return k.pipe
		}
	}
	return k.size
}

// whole returns at most size bytes, to the end of a line if one is among them:
// others may write between two writes.
func whole(b []byte, size int) []byte {
	if len(b) <= size {
		return b
	}
	if end := bytes.LastIndexByte(b[:size], '\n'); end >= 0 {
		return b[:end+1]
	}
	return b[:size]
}

// A stream is what one run writes to its standard output or error.
type stream struct {
	logs   *logs
	of     *service
	fd     int // -1: closed
	to     *sink
	prefix []byte // nil: JSON
	line   []byte // without an end so far
	last   bool   // the run is over
}

func (st *stream) interest() (int, int16) {
	if st.to.full() {
		return -1, 0
	}
	return st.fd, unix.POLLIN
}

// ready reads until there is nothing more or the sink is full.
func (st *stream) ready() {
	if st.logs.buf == nil {
		st.logs.buf = make([]byte, readSize)
	}
	for st.fd >= 0 && !st.to.full() {
		n, err := unix.Read(st.fd, st.logs.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && !st.last:
			return
		case err != nil || n <= 0:
			st.close()
			return
		case st.to.dead:
			st.close() // and the command hears of it, as it would of its own reader
			return
		}
		st.feed(st.logs.buf[:n])
		st.to.ready()
		if n < readSize && !st.last {
			return // others have their turn
		}
	}
}

func (st *stream) close() {
	if len(st.line) > 0 && !st.to.dead {
		st.emit(nil)
		st.to.ready()
	}
	_ = unix.Close(st.fd)
	st.fd = -1
}

// feed passes on the lines that are complete.
func (st *stream) feed(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			end = len(b)
			if len(st.line)+end <= lineMax {
				st.line = append(st.line, b...)
				return
			}
		}
		if room := lineMax - len(st.line); end > room {
			st.emit(b[:room])
			b = b[room:]
			continue
		}
		st.emit(b[:end])
		b = b[min(len(b), end+1):]
	}
}

// emit writes one line: what has been kept of it, and tail.
func (st *stream) emit(tail []byte) {
	k := st.to
	if st.prefix != nil {
		k.buf = append(append(append(append(k.buf, st.prefix...), st.line...), tail...), '\n')
	} else {
		k.buf = st.asJSON(k.buf, append(st.line, tail...))
	}
	st.line = st.line[:0]
	if cap(st.line) > readSize {
		st.line = nil
	}
}

// jsonLine is a line of LOG=json. A line that is no text is given as it is, in
// base64.
type jsonLine struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	Stream  string    `json:"stream"`
	Message *string   `json:"message,omitempty"`
	Bytes   []byte    `json:"message_base64,omitempty"`
}

func (st *stream) asJSON(to, line []byte) []byte {
	j := jsonLine{Time: time.Now(), Command: st.of.Name, Stream: [...]string{1: "stdout", 2: "stderr"}[st.to.fd]}
	if utf8.Valid(line) {
		text := string(line)
		j.Message = &text
	} else {
		j.Bytes = line
	}
	text, _ := json.Marshal(j) // cannot fail
	return append(append(to, text...), '\n')
}
