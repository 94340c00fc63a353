package proc

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrForeign is returned where /proc does not show the caller under the pid it
// has: it is another PID namespace's, and its numbers mean other processes.
var ErrForeign = errors.New("/proc belongs to another PID namespace")

// A Reader reads /proc; it keeps buffers, so it serves one goroutine.
type Reader struct {
	scan   bool          // the kernel has no children files
	kids   map[int][]int // by parent, where scan
	buf    []byte
	dirent []byte
	name   []byte
}

// Open returns a Reader, or an error where /proc is not mounted or not ours. It
// keeps no descriptor open.
func Open() (*Reader, error) {
	r := &Reader{buf: make([]byte, 2*page)}
	text, err := r.read([]byte("/proc/self/status"))
	if err != nil {
		return nil, err
	}
	if !ownNamespace(string(text), os.Getpid()) {
		return nil, ErrForeign
	}
	tid := strconv.Itoa(os.Getpid())
	_, err = r.read([]byte("/proc/self/task/" + tid + "/children"))
	r.scan = errors.Is(err, unix.ENOENT)
	return r, nil
}

// ownNamespace looks at NSpid: the pids of the process from the namespace of the
// mount down to its own. There is one, ours, if both are the same. Kernels
// before 4.1 have no such line, then Pid must do.
func ownNamespace(status string, pid int) bool {
	want := strconv.Itoa(pid)
	if _, line, ok := strings.Cut(status, "\nNSpid:"); ok {
		line, _, _ = strings.Cut(line, "\n")
		return strings.TrimSpace(line) == want
	}
	_, line, _ := strings.Cut(status, "\nPid:")
	line, _, _ = strings.Cut(line, "\n")
	return strings.TrimSpace(line) == want
}

// Refresh must be called before a walk through the tree. Where the kernel keeps
// no list of children it reads every process's parent.
func (r *Reader) Refresh() {
	if !r.scan {
		return
	}
	r.kids = make(map[int][]int)
	_ = r.numbers([]byte("/proc"), func(pid int) {
		if s, ok := r.Stat(pid); ok {
			r.kids[s.Parent] = append(r.kids[s.Parent], pid)
		}
	})
}

// Stat returns the state of pid; not ok means that it is gone, or hidden.
func (r *Reader) Stat(pid int) (s Stat, ok bool) {
	text, err := r.read(r.path(pid, "/stat"))
	if err != nil {
		return Stat{}, false
	}
	return ParseStat(text)
}

// Children appends to dst the children of every thread of the process, as the
// kernel lists them while they change: one can be missing from one reading.
// threads is how many there are, 0 if that is not known.
func (r *Reader) Children(pid, threads int, dst []int) ([]int, error) {
	if r.scan {
		return append(dst, r.kids[pid]...), nil
	}
	if threads == 1 {
		return r.thread(pid, pid, dst)
	}
	var failed error
	err := r.numbers(r.path(pid, "/task"), func(tid int) {
		var err error
		if dst, err = r.thread(pid, tid, dst); err != nil {
			failed = err
		}
	})
	return dst, errors.Join(err, failed)
}

// CountChildren returns how many children the main thread of pid has.
func (r *Reader) CountChildren(pid int) int {
	list, _ := r.Children(pid, 1, nil)
	return len(list)
}

// Numbers calls f with every entry of a directory of /proc that is a number.
func Numbers(dir string, f func(int)) error { return new(Reader).numbers([]byte(dir), f) }

func (r *Reader) thread(pid, tid int, dst []int) ([]int, error) {
	text, err := r.read(append(strconv.AppendInt(r.path(pid, "/task/"), int64(tid), 10), "/children"...))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return dst, nil // the thread has ended
	}
	if err != nil {
		return dst, err
	}
	for len(text) > 0 {
		var word []byte
		word, text = cut(text)
		if n, ok := number(word); ok {
			dst = append(dst, int(n))
		}
	}
	return dst, nil
}

// Name returns the name of pid, or "?".
func (r *Reader) Name(pid int) string {
	text, err := r.read(r.path(pid, "/comm"))
	if err != nil {
		return "?"
	}
	return strings.TrimSuffix(string(text), "\n")
}

// UID returns the effective user id of pid, or -1. The owner of the directory
// would be root's for a process that may not be dumped.
func (r *Reader) UID(pid int) int { return r.statusNumber(pid, "\nUid:", 1) }

// Tracer returns the pid of the process that traces pid, or 0.
func (r *Reader) Tracer(pid int) int { return max(0, r.statusNumber(pid, "\nTracerPid:", 0)) }

func (r *Reader) statusNumber(pid int, key string, field int) int {
	text, err := r.read(r.path(pid, "/status"))
	if err != nil {
		return -1
	}
	_, line, _ := strings.Cut(string(text), key)
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) <= field {
		return -1
	}
	n, err := strconv.Atoi(words[field])
	if err != nil {
		return -1
	}
	return n
}

// LockLimit returns the hard RLIMIT_LOCKS of pid; 0 if it is unlimited or not
// known. prlimit(2) would ask for a privilege where another user's is read.
func (r *Reader) LockLimit(pid int) uint64 {
	text, err := r.read(r.path(pid, "/limits"))
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text), "\nMax file locks ")
	words := strings.Fields(line)
	if len(words) < 2 {
		return 0
	}
	n, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// path returns the name of a file of /proc/PID, until it is called again.
func (r *Reader) path(pid int, file string) []byte {
	r.name = append(strconv.AppendInt(append(r.name[:0], "/proc/"...), int64(pid), 10), file...)
	return r.name
}

// read returns the whole file in the Reader's buffer.
func (r *Reader) read(name []byte) (text []byte, err error) {
	r.buf, text, err = read(name, r.buf)
	return text, err
}

// ReadFile returns the whole of a file of /proc or of a cgroup. os.ReadFile
// would offer it to the poller, which then keeps two descriptors open.
func ReadFile(name string) ([]byte, error) {
	_, text, err := read([]byte(name), make([]byte, page))
	return text, err
}

func read(name []byte, buf []byte) (grown, text []byte, err error) {
	fd, err := open(name, unix.O_RDONLY)
	if err != nil {
		return buf, nil, err
	}
	defer closeFD(fd)
	for n := 0; ; {
		m, err := readFD(fd, buf[n:])
		if err != nil {
			return buf, nil, err
		}
		// What /proc has to say comes a page at a time, so less is the end.
		if n += m; m < page/2 {
			return buf, buf[:n], nil
		}
		if len(buf)-n < page {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

// page is the least that a kernel's page may be, in bytes.
const page = 4096

// numbers calls f with every entry of a directory that is a number. f may use
// the Reader, but not call numbers.
func (r *Reader) numbers(name []byte, f func(int)) error {
	fd, err := open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if r.dirent == nil {
		r.dirent = make([]byte, 8192)
	}
	var names []string
	for {
		n, err := unix.ReadDirent(fd, r.dirent)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		_, _, names = unix.ParseDirent(r.dirent[:n], -1, names[:0])
		for _, name := range names {
			if id, ok := number([]byte(name)); ok {
				f(int(id))
			}
		}
	}
}
