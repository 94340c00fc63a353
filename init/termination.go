package supervisor

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

const (
	defaultTerminationPath = "/dev/termination-log"
	// terminationMax is what Kubernetes reads of a termination message, in bytes.
	terminationMax = 4096
)

// WriteTermination leaves why the container ended where the kubelet looks for
// it: in path, or where that is empty in the default place, if this is PID 1. A
// probe that runs under foster in the same container is not why it ended.
func WriteTermination(path, message string) error {
	flags := unix.O_TRUNC
	switch {
	case path != "":
		flags |= unix.O_CREAT
	case os.Getpid() == 1 && unix.Access(defaultTerminationPath, unix.F_OK) == nil:
		path = defaultTerminationPath
	default:
		return nil
	}
	fd, err := openToWrite(path, flags)
	if err != nil {
		return fmt.Errorf("cannot open %q: %w", path, err)
	}
	defer unix.Close(fd)
	if err := writeAll(fd, []byte(cutText(message, terminationMax))); err != nil {
		return fmt.Errorf("cannot write to %q: %w", path, err)
	}
	return nil
}

// cutText returns at most size bytes of s, without half a character at the end.
func cutText(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for end := size; end > size-utf8.UTFMax && end > 0; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:size] // no text: there is nothing to be kept whole
}

// sentence says how a run failed, for a person who reads kubectl describe pod.
func sentence(r *exec.Result, cause error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Name, r.Reason)
	if cause != nil {
		fmt.Fprintf(&b, ": %v", cause)
	}
	fmt.Fprintf(&b, ", exit code %d", r.ExitCode)
	if r.Signal != 0 {
		fmt.Fprintf(&b, ", ended by SIG%s", Signal(r.Signal))
	}
	fmt.Fprintf(&b, " after %s", r.Duration.Round(time.Millisecond))
	switch {
	case r.Killed == 1:
		b.WriteString(", 1 process killed")
	case r.Killed > 1:
		fmt.Fprintf(&b, ", %d processes killed", r.Killed)
	}
	for _, s := range r.Survivors {
		fmt.Fprintf(&b, "; survived: %s", s)
	}
	return b.String()
}
