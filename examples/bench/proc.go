package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usageOf reads what /proc says of a process and its threads; reading does not wake it.
func usageOf(pid int) (usage, error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	var u usage
	threads, err := filepath.Glob(dir + "/task/*")
	if err != nil || len(threads) == 0 {
		return u, fmt.Errorf("process %d has ended", pid)
	}
	u.threads = len(threads)
	for _, t := range threads {
		f := fieldsOf(t + "/status")
		u.switches += f["voluntary_ctxt_switches"] + f["nonvoluntary_ctxt_switches"]
		run, err := strconv.ParseInt(firstField(t+"/schedstat"), 10, 64)
		if err != nil {
			run = -1
		}
		u.runNs += run
	}
	status, rollup := fieldsOf(dir+"/status"), fieldsOf(dir+"/smaps_rollup")
	u.anon = max(status["RssAnon"], rollup["Anonymous"]) * 1024
	u.rss = max(status["VmRSS"], rollup["Rss"]) * 1024
	u.cpuTicks, err = ticks(dir + "/stat")
	return u, err
}

// fieldsOf reads the numbers of a file of "Name: number" lines; the others are left out.
func fieldsOf(path string) map[string]int {
	data, _ := os.ReadFile(path)
	fields := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if f := strings.Fields(value); len(f) > 0 {
			if n, err := strconv.Atoi(f[0]); err == nil {
				fields[name] = n
			}
		}
	}
	return fields
}

// ticks is utime + stime. The name in stat may hold anything, so the fields are counted from its last parenthesis.
func ticks(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	const utime, stime = 11, 12
	if len(f) <= stime {
		return 0, fmt.Errorf("cannot read %s", path)
	}
	user, err := strconv.Atoi(f[utime])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(f[stime])
	return user + system, err
}
