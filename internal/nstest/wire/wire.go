// Package wire holds what the end-to-end tests and their helper program say to each other.
package wire

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Setup is what the helper's "ns" role arranges before it starts or becomes the command under test.
type Setup struct {
	Fork        bool     // stay as the namespace's init and start the command below; else become it
	PidMax      int      // of the new PID namespace; 0 = as it is
	Cgroups     []string // directories whose cgroup.procs the command joins
	Block       []int    // signals blocked when the command is executed
	Ignore      []int    // signals ignored then
	NoFile      uint64   // soft limit of open files; 0 = as it is
	Fds         []int    // numbers under which /dev/null is left open across exec
	Busy        string   // a tmpfs is mounted here, entered, and a file on it left open as descriptor 9
	UID         int      // user, and group, to become; 0 = as it is
	DropCaps    []int    // capabilities removed from every set, the bounding set included
	NoSubreaper bool     // a seccomp filter refuses PR_SET_CHILD_SUBREAPER
	// TrapSubreaper: a filter sends SIGSYS for it, and the call returns garbage
	TrapSubreaper bool
	NoProc        bool // /proc is not mounted for the command
	HidePid       bool // /proc is mounted hidepid=2
}

// Ended is what the namespace's init reports the moment the command under test has ended.
type Ended struct {
	Code    int // -1 if a signal ended it
	Signal  int
	Elapsed time.Duration
	Left    []Process // all that is in the namespace then, but for its init and the command itself
	Err     string    // what the helper itself could not do

	OOMKilled bool // as the engine has it, of a container
}

// Process is one line of a process list.
type Process struct {
	Pid, Parent int
	Name, State string
	Args        string
}

func (p Process) String() string {
	return fmt.Sprintf("%d (parent %d) %s [%s] %s", p.Pid, p.Parent, p.State, p.Name, p.Args)
}

// List reads the processes that a mounted proc file system shows. One that vanishes meanwhile is not listed.
func List(proc string) ([]Process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := read(filepath.Join(proc, e.Name())); ok {
			p.Pid = pid
			all = append(all, p)
		}
	}
	return all, nil
}

// read parses stat from its last ")" on: a name may hold anything, also ") Z 1".
func read(dir string) (Process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 2 {
		return Process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	return Process{
		Parent: parent, Name: string(stat[open+1 : end]), State: fields[0],
		Args: strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " ")),
	}, true
}

// Children returns the pids below every thread of a process, as the given proc file system numbers them.
func Children(proc string, pid int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("%s/%d/task/*/children", proc, pid))
	var pids []int
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
