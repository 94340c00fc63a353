package supervisor

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"
	"golang.org/x/sys/unix"
)

// Argv is a program and its arguments: a JSON array, which is taken as it is, or
// the words of a line as a shell would split it. Nothing is expanded.
type Argv []string

// operators are what only a shell would understand.
var operators = []string{"&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1"}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Argv) UnmarshalText(text []byte) error {
	words, err := argv(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if len(words) == 0 || words[0] == "" {
		return fmt.Errorf("%q names no program", text)
	}
	*a = words
	return nil
}

func argv(text string) (words []string, err error) {
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &words); err != nil || !utf8.ValidString(text) {
			return nil, fmt.Errorf(`%q is no JSON array of strings: write ["program", "argument"], or program argument`, text)
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "\x00") }) {
			return nil, fmt.Errorf("%q has a NUL byte, which no argument can hold", text)
		}
		return words, nil
	}
	if words, err = shellquote.Split(text); err != nil {
		return nil, fmt.Errorf("cannot split %q: %s", text, strings.ToLower(err.Error()))
	}
	for _, w := range words {
		if slices.Contains(operators, w) {
			return nil, fmt.Errorf(`%q has a %s, but there is no shell: write ["sh", "-c", "..."], or a JSON array if it is meant so`, text, w)
		}
	}
	return words, nil
}

func (a Argv) String() string {
	if len(a) == 0 {
		return ""
	}
	return quoted(redacted(a))
}

// Names is a list of commands, in start order.
type Names []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Names) UnmarshalText(text []byte) error {
	*n = nil
	for word := range strings.SplitSeq(string(text), ",") {
		word = strings.TrimSpace(word)
		if strings.Trim(keyOf(word), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || strings.Trim(word, "-._") == "" {
			return fmt.Errorf("%q is no name of a command: write letters, digits, - . and _", word)
		}
		*n = append(*n, word)
	}
	return nil
}

func (n Names) String() string { return strings.Join(n, ",") }

// oneOf returns text if it is one of names.
func oneOf[T ~string](to *T, text []byte, names ...T) error {
	for _, n := range names {
		if string(n) == string(text) {
			*to = n
			return nil
		}
	}
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(words, ", "))
}

// Type says when a command runs, in the pod spec's terms.
type Type string

// Init containers, containers, and native sidecars.
const (
	TypeInit    Type = "init"
	TypeMain    Type = "main"
	TypeSidecar Type = "sidecar"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Type) UnmarshalText(text []byte) error {
	return oneOf(t, text, TypeInit, TypeMain, TypeSidecar)
}

// RestartPolicy says after which runs another one follows.
type RestartPolicy string

// The policies of a pod's containers.
const (
	RestartAlways    RestartPolicy = "Always"
	RestartOnFailure RestartPolicy = "OnFailure"
	RestartNever     RestartPolicy = "Never"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *RestartPolicy) UnmarshalText(text []byte) error {
	return oneOf(p, text, RestartAlways, RestartOnFailure, RestartNever)
}

// Stdin says what a command reads.
type Stdin string

// No input, or foster's own.
const (
	StdinNull    Stdin = "null"
	StdinInherit Stdin = "inherit"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Stdin) UnmarshalText(text []byte) error { return oneOf(s, text, StdinNull, StdinInherit) }

// LogMode says what becomes of a command's output.
type LogMode string

// Foster's own descriptors, each line with the name before it, each line as a
// JSON object, nothing.
const (
	LogInherit LogMode = "inherit"
	LogPrefix  LogMode = "prefix"
	LogJSON    LogMode = "json"
	LogNull    LogMode = "null"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LogMode) UnmarshalText(text []byte) error {
	return oneOf(l, text, LogInherit, LogPrefix, LogJSON, LogNull)
}

// Condition is what another command is waited for to be.
type Condition string

// Started: it has been executed. Ready: it has shown that it is, or has
// completed; without a READY_ key it is when it has started. Completed: it has
// ended with a success code.
const (
	Started      Condition = "started"
	Ready        Condition = "ready"
	CompletedRun Condition = "completed"
)

// Dependency is a command and what it is to be.
type Dependency struct {
	On    string
	Until Condition
}

// Dependencies is a list such as proxy:ready,migrate:completed.
type Dependencies []Dependency

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Dependencies) UnmarshalText(text []byte) error {
	*d = nil
	for word := range strings.SplitSeq(string(text), ",") {
		name, condition, _ := strings.Cut(strings.TrimSpace(word), ":")
		dep := Dependency{On: name}
		if err := oneOf(&dep.Until, []byte(condition), Started, Ready, CompletedRun); err != nil || name == "" {
			return fmt.Errorf("%q says not what to wait for: write name:started, name:ready or name:completed", word)
		}
		*d = append(*d, dep)
	}
	return nil
}

func (d Dependencies) String() string {
	words := make([]string, len(d))
	for i, dep := range d {
		words[i] = dep.On + ":" + string(dep.Until)
	}
	return strings.Join(words, ",")
}

// Address is where a port is tried: 8080, :8080, 127.0.0.1:8080, [::1]:8080.
type Address struct{ netip.AddrPort }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) (err error) {
	s := string(text)
	switch {
	case !strings.Contains(s, ":"):
		s = "127.0.0.1:" + s
	case s[0] == ':':
		s = "127.0.0.1" + s
	case strings.HasPrefix(s, "localhost:"):
		s = "127.0.0.1" + strings.TrimPrefix(s, "localhost")
	}
	if a.AddrPort, err = netip.ParseAddrPort(s); err != nil || a.Port() == 0 {
		return fmt.Errorf("%q is no port: write 8080, 127.0.0.1:8080 or [::1]:8080", text)
	}
	return nil
}

func (a Address) String() string {
	if !a.IsValid() {
		return ""
	}
	return a.AddrPort.String()
}

// FD is one descriptor above 2; 0 is none.
type FD int

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *FD) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil || n < 3 || n > maxFD {
		return fmt.Errorf("%q is no descriptor: write a number from 3 to %d", text, maxFD)
	}
	*f = FD(n)
	return nil
}

func (f FD) String() string {
	if f == 0 {
		return ""
	}
	return strconv.Itoa(int(f))
}

// Count is a number of times.
type Count int

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return fmt.Errorf("%q is no number of times: write 0 or more", text)
	}
	*c = Count(n)
	return nil
}

// Bool is true or false.
type Bool bool

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bool) UnmarshalText(text []byte) error {
	switch string(text) {
	case "true", "false":
		*b = string(text) == "true"
		return nil
	}
	return fmt.Errorf("%q is neither true nor false", text)
}

// Limit is a resource limit: N, SOFT:HARD, or unlimited in place of a number.
type Limit struct {
	Soft, Hard uint64
	Set        bool
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(text []byte) error {
	soft, hard, two := strings.Cut(string(text), ":")
	if !two {
		hard = soft
	}
	var ok, okHard bool
	l.Soft, ok = limit(soft)
	l.Hard, okHard = limit(hard)
	l.Set = true
	if !ok || !okHard || l.Soft > l.Hard {
		return fmt.Errorf("%q is no limit: write a number, SOFT:HARD or unlimited", text)
	}
	return nil
}

func limit(text string) (uint64, bool) {
	if text == "unlimited" {
		return unix.RLIM_INFINITY, true
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil
}

func (l Limit) String() string {
	if !l.Set {
		return ""
	}
	one := func(n uint64) string {
		if n == unix.RLIM_INFINITY {
			return "unlimited"
		}
		return strconv.FormatUint(n, 10)
	}
	if l.Soft == l.Hard {
		return one(l.Soft)
	}
	return one(l.Soft) + ":" + one(l.Hard)
}

// OOMScoreAdj is proc(5)'s oom_score_adj; nil if unchanged.
type OOMScoreAdj struct{ N *int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *OOMScoreAdj) UnmarshalText(text []byte) (err error) {
	o.N, err = between(text, -1000, 1000)
	return err
}

func (o OOMScoreAdj) String() string { return optional(o.N) }

// Nice is a nice value; nil if unchanged.
type Nice struct{ N *int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Nice) UnmarshalText(text []byte) (err error) {
	n.N, err = between(text, -20, 19)
	return err
}

func (n Nice) String() string { return optional(n.N) }

func between(text []byte, least, most int) (*int, error) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < least || n > most {
		return nil, fmt.Errorf("%q is no such number: write %d to %d", text, least, most)
	}
	return &n, nil
}

func optional(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// Signals is a list of signals to pass on.
type Signals []Signal

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Signals) UnmarshalText(text []byte) error {
	*s = nil
	for word := range strings.SplitSeq(string(text), ",") {
		var sig Signal
		if err := sig.UnmarshalText([]byte(strings.TrimSpace(word))); err != nil {
			return err
		}
		switch unix.Signal(sig) {
		case unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGPIPE, unix.SIGURG:
			return fmt.Errorf("%q is not passed on: it stops everything, or cannot be caught; write such as HUP,USR1", word)
		}
		*s = append(*s, sig)
	}
	return nil
}

func (s Signals) String() string {
	words := make([]string, len(s))
	for i, sig := range s {
		words[i] = sig.String()
	}
	return strings.Join(words, ",")
}
