package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cgroup of the pids controller with two groups below it: what is under test lives in init, what it is given may move to
// load. The limit is on both together, as in a container.
type cgroup struct {
	dir, init, load string
}

func newCgroup() (*cgroup, error) {
	root, v2, err := pidsController()
	if err != nil {
		return nil, err
	}
	sweepStale(root)
	dir := filepath.Join(root, "foster-bench-"+strconv.Itoa(os.Getpid()))
	g := &cgroup{dir, filepath.Join(dir, "init"), filepath.Join(dir, "load")}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: no pids cgroup: %w", errUnavailable, err)
	}
	if v2 {
		err = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+pids"), 0)
	}
	for _, sub := range []string{g.init, g.load} {
		if err == nil {
			err = os.Mkdir(sub, 0o755)
		}
	}
	if err != nil {
		g.remove()
		return nil, fmt.Errorf("%w: no pids cgroup: %w", errUnavailable, err)
	}
	return g, nil
}

// pidsController finds where groups can be made. The controller is not switched on where it is off: that change would stay.
func pidsController() (root string, v2 bool, err error) {
	const v1Root, v2Root = "/sys/fs/cgroup/pids", "/sys/fs/cgroup"
	if _, err := os.Stat(v1Root + "/cgroup.procs"); err == nil {
		return v1Root, false, nil
	}
	enabled, _ := os.ReadFile(v2Root + "/cgroup.subtree_control")
	for _, c := range strings.Fields(string(enabled)) {
		if c == "pids" {
			return v2Root, true, nil
		}
	}
	return "", false, fmt.Errorf("%w: no pids controller in /sys/fs/cgroup", errUnavailable)
}

// sweepStale removes what a run left that was itself killed. rmdir does nothing to a group that is in use.
func sweepStale(root string) {
	stale, _ := filepath.Glob(root + "/foster-bench-*")
	for _, dir := range stale {
		(&cgroup{dir, dir + "/init", dir + "/load"}).rmdir()
	}
}

func (g *cgroup) limit(n int) error {
	return os.WriteFile(g.dir+"/pids.max", []byte(strconv.Itoa(n)), 0)
}

// procs are the processes in it, dead ones that nobody has reaped included.
func (g *cgroup) procs() []int {
	var pids []int
	for _, dir := range []string{g.init, g.load} {
		data, _ := os.ReadFile(dir + "/cgroup.procs")
		for _, f := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// awaitEmpty gives the kernel time to take down a namespace whose PID 1 was killed.
func (g *cgroup) awaitEmpty(bound time.Duration) bool {
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if len(g.procs()) == 0 {
			return true
		}
	}
	return false
}

func (g *cgroup) rmdir() bool {
	os.Remove(g.init)
	os.Remove(g.load)
	return os.Remove(g.dir) == nil
}

// remove leaves nothing behind, whatever has gone wrong: what is in this group was started by this program.
func (g *cgroup) remove() {
	if !g.awaitEmpty(30 * time.Second) {
		// No new process can be made while the old ones are killed.
		_ = g.limit(0)
		for range 100 {
			for _, pid := range g.procs() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			if g.awaitEmpty(50 * time.Millisecond) {
				break
			}
		}
	}
	if !g.rmdir() {
		progress("cannot remove %s; it holds %v", g.dir, g.procs())
	}
}
