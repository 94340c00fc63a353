package exec

import (
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what to run and how it ends. The zero value of a field that has no
// other meaning leaves it as the caller has it.
type Spec struct {
	Name    string   // what reports and logs call the command; Args[0] if empty
	Attempt int      // which run of the command this is, for the report
	Args    []string // the program and its arguments; looked up in the PATH of Env
	Env     []string // "NAME=value"; nil is the caller's environment
	Dir     string   // working directory
	Umask   *int
	// Credential is who the command runs as; it takes CAP_SETUID and CAP_SETGID.
	Credential *Credential
	// Limits, OOMScoreAdj (proc(5)) and Nice are set just before the command is
	// started; what may not be set is an error then.
	Limits      []Limit
	OOMScoreAdj *int
	Nice        *int

	Timeout      time.Duration // run time after which the command is stopped; 0 is none
	GracePeriod  time.Duration // from the stop signal to SIGKILL; 0 is SIGKILL at once
	StopSignal   unix.Signal   // 0 is SIGTERM
	SignalTarget SignalTarget
	Leftovers    Leftovers
}

// DefaultGracePeriod is what [Command] sets and the binary assumes.
const DefaultGracePeriod = 10 * time.Second

// Credential is a user to run as, with all its groups.
type Credential struct {
	UID, GID uint32
	Groups   []uint32 // supplementary
}

// Limit is a resource limit, getrlimit(2).
type Limit struct {
	Resource   int // such as unix.RLIMIT_NOFILE
	Soft, Hard uint64
}

// SignalTarget says which processes get the stop signal and what is forwarded.
type SignalTarget int

// The process group is what a terminal signals, and what most programs expect.
const (
	TargetGroup   SignalTarget = iota // the main process's group
	TargetProcess                     // the main process alone
	TargetTree                        // the main process and all its descendants
)

// Leftovers says what becomes of the tree once its main process has ended.
type Leftovers int

// Kill stops them as a stop would, wait treats the command as running, leave
// hands them to the next subreaper or init above.
const (
	LeftoversKill Leftovers = iota
	LeftoversWait
	LeftoversLeave
)

var (
	targetNames    = []string{"group", "process", "tree"}
	leftoversNames = []string{"kill", "wait", "leave"}
)

func (t SignalTarget) String() string { return nameOf(targetNames, int(t)) }
func (l Leftovers) String() string    { return nameOf(leftoversNames, int(l)) }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return strconv.Itoa(i)
	}
	return names[i]
}

// MarshalText implements encoding.TextMarshaler.
func (t SignalTarget) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText accepts the names of the constants: group, process, tree.
func (t *SignalTarget) UnmarshalText(text []byte) error {
	i, err := index(targetNames, string(text))
	*t = SignalTarget(i)
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (l Leftovers) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText accepts the names of the constants: kill, wait, leave.
func (l *Leftovers) UnmarshalText(text []byte) error {
	i, err := index(leftoversNames, string(text))
	*l = Leftovers(i)
	return err
}

func index(names []string, name string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is none of %s, %s, %s", name, names[0], names[1], names[2])
}

// environ is the environment that the command starts with.
func (s *Spec) environ() []string {
	if s.Env == nil {
		return syscall.Environ()
	}
	return s.Env
}

func (s *Spec) name() string {
	if s.Name != "" || len(s.Args) == 0 {
		return s.Name
	}
	return s.Args[0]
}

func (s *Spec) stopSignal() unix.Signal {
	if s.GracePeriod <= 0 {
		return unix.SIGKILL
	}
	if s.StopSignal == 0 {
		return unix.SIGTERM
	}
	return s.StopSignal
}
