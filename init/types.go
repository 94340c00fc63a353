package supervisor

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/sigwait"
)

// The types of configuration values parse themselves: UnmarshalText takes what
// a variable or an option may say, String gives it back in one form.

// Duration is a time span: 90s, 1m30s, 250ms, or a bare number of seconds, as
// Kubernetes writes it.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if strings.Trim(s, "+-.0123456789") == "" {
		s += "s"
	}
	v, err := time.ParseDuration(s)
	if err != nil && strings.Trim(s, "0123456789.hmns") == "" && strings.Trim(string(text), "0123456789.") == "" {
		return fmt.Errorf("%q is too long: 292 years are the most", text)
	}
	if err != nil {
		return fmt.Errorf("%q is no duration: write 90s, 1m30s, 250ms or a number of seconds", text)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", text)
	}
	if v == 0 && strings.ContainsAny(s, "123456789") {
		return fmt.Errorf("%q is less than a nanosecond", text)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// Signal is a signal: TERM, SIGTERM, 15, RTMIN+3.
type Signal unix.Signal

const (
	rtMin = int(sigwait.RTMin)
	rtMax = int(sigwait.Last)
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Signal) UnmarshalText(text []byte) error {
	name := strings.TrimPrefix(strings.ToUpper(string(text)), "SIG")
	n, ok := signalNumber(name)
	if !ok || n < 1 || n > rtMax {
		return fmt.Errorf("%q is no signal: write TERM, SIGTERM, 15 or RTMIN+3", text)
	}
	*s = Signal(n)
	return nil
}

func signalNumber(name string) (n int, ok bool) {
	if offset, is := strings.CutPrefix(name, "RTMIN"); is {
		return realtime(rtMin, '+', offset)
	}
	if offset, is := strings.CutPrefix(name, "RTMAX"); is {
		return realtime(rtMax, '-', offset)
	}
	if n := unix.SignalNum("SIG" + name); n != 0 {
		return int(n), true
	}
	n, err := strconv.Atoi(name)
	return n, err == nil && name[0] != '+'
}

func realtime(base int, sign byte, offset string) (int, bool) {
	if offset == "" {
		return base, true
	}
	n, err := strconv.Atoi(offset)
	n += base
	return n, err == nil && offset[0] == sign && n >= rtMin && n <= rtMax
}

func (s Signal) String() string {
	return strings.TrimPrefix(sigwait.Name(unix.Signal(s)), "SIG")
}

// Umask is a file mode creation mask, in octal; nil if unchanged.
type Umask struct{ Bits *int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *Umask) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 8, 32)
	if err != nil || n > 0o777 {
		return fmt.Errorf("%q is no umask: write it in octal, 000 to 777", text)
	}
	bits := int(n)
	u.Bits = &bits
	return nil
}

func (u Umask) String() string {
	if u.Bits == nil {
		return ""
	}
	return fmt.Sprintf("%03o", *u.Bits)
}

// ExitCodes is a list of exit codes, such as 0,143.
type ExitCodes []int

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *ExitCodes) UnmarshalText(text []byte) error {
	codes, err := numbers(string(text), 255)
	if err != nil {
		return fmt.Errorf("%q is no list of exit codes: write 143 or 0,143, each 0 to 255", text)
	}
	*c = codes
	return nil
}

// Has reports whether code is in the list.
func (c ExitCodes) Has(code int) bool { return slices.Contains(c, code) }

func (c ExitCodes) String() string { return join(c) }

// FDs is a list of file descriptors, such as 3,4.
type FDs []int

// maxFD keeps a mistyped number from making the list of descriptors huge.
const maxFD = 1023

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *FDs) UnmarshalText(text []byte) error {
	fds, err := numbers(string(text), maxFD)
	if err != nil || slices.ContainsFunc(fds, func(fd int) bool { return fd < 3 }) {
		return fmt.Errorf("%q is no list of descriptors: write 3 or 3,4, each 3 to %d; 0, 1 and 2 are passed anyway", text, maxFD)
	}
	*f = fds
	return nil
}

func (f FDs) String() string { return join(f) }

func numbers(text string, limit int) (list []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(word), 10, 16)
		if err != nil || int(n) > limit {
			return nil, fmt.Errorf("%q is not a number from 0 to %d", word, limit)
		}
		list = append(list, int(n))
	}
	return list, nil
}

func join(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// Report is where the lines of the report go: a path, or fd:N.
type Report struct {
	Path string
	FD   int // where Path is empty and this is positive
}

// UnmarshalText implements encoding.TextUnmarshaler. The paths that mean a
// descriptor are taken as that: by the time there is something to report, foster
// has let go of standard output, and a path cannot open every pipe again.
func (r *Report) UnmarshalText(text []byte) error {
	switch string(text) {
	case "/dev/stdout":
		text = []byte("fd:1")
	case "/dev/stderr":
		text = []byte("fd:2")
	}
	number, is := strings.CutPrefix(string(text), "fd:")
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if path, fd := strings.CutPrefix(string(text), dir); fd {
			number, is = path, true
		}
	}
	if !is {
		r.Path = string(text)
		return nil
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || n > maxFD {
		return fmt.Errorf("%q is no descriptor: write fd:1 to fd:%d", text, maxFD)
	}
	r.FD = int(n)
	return nil
}

func (r Report) String() string {
	if r.FD > 0 {
		return "fd:" + strconv.Itoa(r.FD)
	}
	return r.Path
}

// LogLevel is debug, info, warn or error.
type LogLevel slog.Level

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LogLevel) UnmarshalText(text []byte) error {
	switch name := strings.ToLower(string(text)); name {
	case "debug", "info", "warn", "error":
		return (*slog.Level)(l).UnmarshalText([]byte(name))
	}
	return fmt.Errorf("%q is none of debug, info, warn, error", text)
}

func (l LogLevel) String() string { return strings.ToLower(slog.Level(l).String()) }

// LogFormat is text, json or auto.
type LogFormat string

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *LogFormat) UnmarshalText(text []byte) error {
	switch v := LogFormat(text); v {
	case "auto", "text", "json":
		*f = v
		return nil
	}
	return fmt.Errorf("%q is none of auto, text, json", text)
}

func (f LogFormat) String() string { return string(f) }
