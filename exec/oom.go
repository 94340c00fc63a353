package exec

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fosterinit/foster/internal/proc"
)

// oomKills returns how many processes of foster's memory cgroup the kernel has
// killed for want of memory: oom_kill of memory.events in cgroup v2, of
// memory.oom_control in v1. 0 where there is no such file.
func oomKills() int {
	group, err := proc.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(group)) {
		// hierarchy:controllers:path, cgroups(7)
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		dir, file := "/sys/fs/cgroup", "memory.events"
		if part[1] == "memory" {
			dir, file = "/sys/fs/cgroup/memory", "memory.oom_control"
		} else if part[0] != "0" {
			continue
		}
		// The path is the host's where there is no cgroup namespace: then the
		// container's own group is what is mounted.
		for _, at := range []string{filepath.Join(dir, part[2], file), filepath.Join(dir, file)} {
			if text, err := proc.ReadFile(at); err == nil {
				return oomCount(string(text))
			}
		}
	}
	return 0
}

func oomCount(text string) int {
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			count, _ := strconv.Atoi(n)
			return count
		}
	}
	return 0
}
