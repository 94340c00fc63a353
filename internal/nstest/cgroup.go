package nstest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// PidsCgroup makes a cgroup that holds so many processes at most and returns its directory. Whatever forks without end
// has to be in one.
func PidsCgroup(t testing.TB, most int) string {
	t.Helper()
	return cgroup(t, "pids", map[string]int{"pids.max": most})
}

// MemoryCgroup makes a cgroup of so many bytes and returns its directory.
func MemoryCgroup(t testing.TB, most int) string {
	t.Helper()
	if isV2() {
		return cgroup(t, "memory", map[string]int{"memory.max": most})
	}
	return cgroup(t, "memory", map[string]int{"memory.limit_in_bytes": most})
}

func isV2() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// cgroup makes a group under version 1's controller or, for version 2, at the root, where every controller may be
// handed down.
func cgroup(t testing.TB, controller string, limits map[string]int) string {
	t.Helper()
	NeedRoot(t)
	root := filepath.Join("/sys/fs/cgroup", controller)
	if isV2() {
		root = "/sys/fs/cgroup"
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	dir, err := os.MkdirTemp(root, prefix+unique+"-")
	if err != nil {
		Skip(t, "no "+controller+" cgroup: "+err.Error())
	}
	t.Cleanup(func() {
		if err := removeCgroup(dir); err != nil {
			t.Error(err)
		}
	})
	for file, n := range limits {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(n)), 0); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// removeCgroup waits for the dead: a process leaves its cgroup a little after it has been waited for.
func removeCgroup(dir string) (err error) {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = os.Remove(dir); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return err
}
