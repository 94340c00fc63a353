package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
	"github.com/fosterinit/foster/internal/fdio"
)

// reportLine is the report's JSON; times are in milliseconds, sizes in bytes.
type reportLine struct {
	Name        string           `json:"name"`
	Attempt     int              `json:"attempt"`
	Pid         int              `json:"pid"`
	Reason      exec.Reason      `json:"reason"`
	ExitCode    int              `json:"exit_code"`
	Signal      string           `json:"signal"` // as SIGTERM, empty if none
	StartedAt   time.Time        `json:"started_at"`
	DurationMS  int64            `json:"duration_ms"`
	UserMS      int64            `json:"user_ms"`
	SystemMS    int64            `json:"system_ms"`
	MaxRSSBytes int64            `json:"max_rss_bytes"`
	Killed      int              `json:"killed"`
	Escaped     int              `json:"escaped"`
	Survivors   []reportSurvivor `json:"survivors"`
}

type reportSurvivor struct {
	Pid    int    `json:"pid"`
	UID    int    `json:"uid"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason"`
}

func newReportLine(r *exec.Result) reportLine {
	line := reportLine{
		Name: r.Name, Attempt: r.Attempt, Pid: r.Pid, Reason: r.Reason, ExitCode: r.ExitCode,
		StartedAt: r.StartedAt, DurationMS: r.Duration.Milliseconds(),
		UserMS: r.UserTime.Milliseconds(), SystemMS: r.SystemTime.Milliseconds(), MaxRSSBytes: r.MaxRSS,
		Killed: r.Killed, Escaped: r.Escaped, Survivors: []reportSurvivor{},
	}
	if r.Signal != 0 {
		line.Signal = "SIG" + Signal(r.Signal).String()
	}
	for _, s := range r.Survivors {
		line.Survivors = append(line.Survivors, reportSurvivor(s))
	}
	return line
}

// openReport makes sure, before anything is started, that the report can be
// written. The file is not kept open: it would keep its file system busy.
func (plan *Plan) openReport() error {
	r := &plan.Config.Report
	if r.Path == "" {
		return nil
	}
	path, err := plan.writable(r.Path)
	r.Path = path
	return err
}

// writable makes a path independent of the working directory, and of symbolic
// links that a command may make before something is written there, and tries
// whether that can be.
func (plan *Plan) writable(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path, fmt.Errorf("cannot tell where %q is: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	fd, err := openToWrite(abs, 0)
	if err == nil {
		return abs, unix.Close(fd)
	}
	if errors.Is(err, unix.ENOENT) {
		err = unix.Faccessat(unix.AT_FDCWD, filepath.Dir(abs), unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	}
	if err != nil {
		return abs, fmt.Errorf("cannot write %q: %w", abs, err)
	}
	return abs, nil
}

// openToWrite does not wait for a FIFO's reader: there has to be one. It follows
// no symbolic link: the path had none when it was checked.
func openToWrite(path string, flags int) (int, error) {
	return unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW|flags, 0o644)
}

func (plan *Plan) writeReport(r *exec.Result) error {
	to := plan.Config.Report
	if to == (Report{}) {
		return nil
	}
	line, err := json.Marshal(newReportLine(r))
	if err != nil {
		return err
	}
	fd := to.FD
	if to.Path != "" {
		if fd, err = openToWrite(to.Path, unix.O_APPEND|unix.O_CREAT); err != nil {
			return fmt.Errorf("cannot open %q: %w", to.Path, err)
		}
		defer unix.Close(fd)
	}
	if err := writeAll(fd, append(line, '\n')); err != nil {
		return fmt.Errorf("cannot write to %q: %w", to, err)
	}
	return nil
}

// writeAll gives a reader, of a pipe, a second to take the bytes.
func writeAll(fd int, b []byte) error {
	_, err := fdio.Writer{FD: fd, Wait: time.Second}.Write(b)
	return err
}
