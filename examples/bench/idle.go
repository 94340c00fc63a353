package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settle is left to a process before it is called idle.
const settle = 3 * time.Second

// An idler is a process that has nothing to do, and what was seen of it.
type idler struct {
	name          string
	pid           int
	before, after usage
}

// A usage is what a process has used up to now, over all threads.
type usage struct {
	switches, threads int
	cpuTicks          int   // utime + stime of the process, in clock ticks
	runNs             int64 // the scheduler's own account, which a tick is too coarse for; -1 where the kernel keeps none
	anon, rss         int   // bytes; the greater of status and smaps_rollup, as the first may lag behind
}

// idling watches all at once: nothing of them is busy, so they do not disturb each other, and they see the same machine.
func (b *bench) idling() ([]row, error) {
	if err := b.caged(); err != nil {
		return nil, err
	}
	if err := b.group.limit(1000); err != nil {
		return nil, fmt.Errorf("cannot set the pids limit: %w", err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	var started []*exec.Cmd
	defer func() {
		cancel()
		for _, cmd := range started {
			_ = cmd.Wait()
		}
		b.group.awaitEmpty(5 * time.Second)
	}()
	idlers, err := b.startIdlers(ctx, &started)
	if err != nil {
		return nil, err
	}
	if err := watch(ctx, idlers, b.idle); err != nil {
		return nil, err
	}
	return idleRows(idlers, b.idle), nil
}

// startIdlers starts everything that can be an init as PID 1, and foster also as an ordinary process. It adds to started even
// when it fails.
func (b *bench) startIdlers(ctx context.Context, started *[]*exec.Cmd) ([]*idler, error) {
	var idlers []*idler
	// The sleep ends by itself, should everything else fail.
	sleep := []string{"--", "sleep", strconv.Itoa(int((b.idle + 30*time.Second).Seconds()))}
	add := func(name, path string, ordinary bool) error {
		args := b.cageArgs(trial{fair: true, ordinary: ordinary, command: append([]string{path}, sleep...)})
		cmd := b.command(ctx, "cage", args...)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("cannot start a cage: %w", err)
		}
		*started = append(*started, cmd)
		idlers = append(idlers, &idler{name: name, pid: cmd.Process.Pid})
		return nil
	}
	err := errors.Join(add("foster as PID 1", b.foster, false), add("foster as an ordinary process", b.foster, true))
	for _, p := range peers {
		if p.asInit && p.path() != "" {
			err = errors.Join(err, add(p.name+" as PID 1", p.path(), false))
		}
	}
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	for _, i := range idlers {
		if i.pid, err = initBelow(i.pid); err != nil {
			return nil, fmt.Errorf("%s is not running: %w", i.name, err)
		}
	}
	return idlers, nil
}

// initBelow goes down from a cage to the process whose child is the sleep.
func initBelow(pid int) (int, error) {
	for {
		child, err := onlyChild(pid)
		if err != nil {
			return 0, err
		}
		if name := firstField(fmt.Sprintf("/proc/%d/comm", child)); name == "sleep" {
			return pid, nil
		}
		pid = child
	}
}

func onlyChild(pid int) (int, error) {
	// Any thread may have forked it.
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		data, _ := os.ReadFile(f)
		if fields := strings.Fields(string(data)); len(fields) > 0 {
			return strconv.Atoi(fields[0])
		}
	}
	return 0, fmt.Errorf("process %d has no child", pid)
}

func watch(ctx context.Context, idlers []*idler, span time.Duration) error {
	var err error
	for _, i := range idlers {
		if i.before, err = usageOf(i.pid); err != nil {
			return err
		}
	}
	if err := pause(ctx, span); err != nil {
		return err
	}
	for _, i := range idlers {
		if i.after, err = usageOf(i.pid); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func idleRows(idlers []*idler, span time.Duration) []row {
	var details []string
	var worst usage
	for n, i := range idlers {
		u := usage{
			i.after.switches - i.before.switches, i.after.threads, i.after.cpuTicks - i.before.cpuTicks,
			i.after.runNs - i.before.runNs, i.after.anon, i.after.rss,
		}
		details = append(details, fmt.Sprintf("%s: %d context switches, %d ticks of CPU (%d ns by the scheduler), %d kB private, %d kB RSS, %d threads",
			i.name, u.switches, u.cpuTicks, u.runNs, u.anon/1024, u.rss/1024, u.threads))
		if n < 2 { // the first two are foster
			worst.switches, worst.cpuTicks = max(worst.switches, u.switches), max(worst.cpuTicks, u.cpuTicks)
			worst.runNs, worst.anon, worst.rss = max(worst.runNs, u.runNs), max(worst.anon, u.anon), max(worst.rss, u.rss)
		}
	}
	quiet := "met"
	if worst.switches > 0 || worst.cpuTicks > 0 || worst.runNs > 0 {
		quiet = "MISSED"
	}
	return []row{
		{
			fmt.Sprintf("idle with one command, %v (the worse of PID 1 and not)", span), "no wake-up, no CPU",
			fmt.Sprintf("%d context switches, %d ns of CPU", worst.switches, worst.runNs), quiet, details,
		},
		{"idle: private memory (RssAnon)", "at most 1200000 bytes", fmt.Sprint(worst.anon), atMost(float64(worst.anon), 1.2e6), nil},
		{"idle: RSS", "at most 4000000 bytes", fmt.Sprint(worst.rss), atMost(float64(worst.rss), 4e6), nil},
	}
}
