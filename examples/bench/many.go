package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A supervisor starts commands that are shell scripts, by name.
type supervisorPeer struct {
	name, program string
	// set writes what it wants in dir and returns its arguments and environment.
	set func(dir string, scripts []string) (args, env []string, err error)
	// stop is the signal that ends it with its commands; 0: it has none that does both.
	stop syscall.Signal
}

var supervisors = []supervisorPeer{
	{"foster", "", setFoster, syscall.SIGTERM},
	{"supervisord", "supervisord", setSupervisord, syscall.SIGTERM},
	{"s6", "s6-svscan", setDirs, syscall.SIGTERM},
	{"runit", "runsvdir", setDirs, 0},
}

func setFoster(_ string, scripts []string) (args, env []string, err error) {
	var names []string
	for i, s := range scripts {
		name := fmt.Sprintf("c%d", i)
		names = append(names, name)
		env = append(env, fmt.Sprintf("FOSTER_C%d_COMMAND=[\"sh\", \"-c\", %q]", i, s))
	}
	return nil, append(env, "FOSTER_COMMANDS="+strings.Join(names, ",")), nil
}

func setSupervisord(dir string, scripts []string) (args, env []string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[supervisord]\nnodaemon=true\nuser=root\nlogfile=/dev/null\nlogfile_maxbytes=0\npidfile=%s/pid\nchildlogdir=%s\n", dir, dir)
	for i, s := range scripts {
		fmt.Fprintf(&b, "[program:c%d]\ncommand=sh -c %q\nstdout_logfile=NONE\nstderr_logfile=NONE\n", i, s)
	}
	conf := filepath.Join(dir, "supervisord.conf")
	return []string{"-c", conf}, nil, os.WriteFile(conf, []byte(b.String()), 0o600)
}

// setDirs is what s6 and runit have in common: a directory for each with a program run in it.
func setDirs(dir string, scripts []string) (args, env []string, err error) {
	for i, s := range scripts {
		service := filepath.Join(dir, "services", fmt.Sprintf("c%d", i))
		if err := os.MkdirAll(service, 0o700); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(filepath.Join(service, "run"), []byte("#!/bin/sh\n"+s+"\n"), 0o700); err != nil {
			return nil, nil, err
		}
	}
	return []string{filepath.Join(dir, "services")}, nil, nil
}

// start starts the supervisor with the scripts in a session of its own. Its working directory is below the bench's.
func (b *bench) startSupervisor(ctx context.Context, p supervisorPeer, scripts []string) (*exec.Cmd, error) {
	path := b.foster
	if p.program != "" {
		var err error
		if path, err = exec.LookPath(p.program); err != nil {
			return nil, fmt.Errorf("%w: no %s", errUnavailable, p.program)
		}
	}
	dir, err := os.MkdirTemp(b.dir, p.name+"-")
	if err != nil {
		return nil, err
	}
	args, env, err := p.set(dir, scripts)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = append(cleanEnv(), env...), dir
	// A namespace takes all with it when the bench ends: not every peer does that itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true, Cloneflags: syscall.CLONE_NEWPID}
	return cmd, nil
}

// many measures what several commands cost, beside other supervisors.
func (b *bench) many() ([]row, error) {
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("%w: needs root for a PID namespace", errUnavailable)
	}
	rows, err := b.manyStarts()
	for _, measure := range []func() ([]row, error){b.manyIdle, b.manyLines, b.manyCrashes} {
		more, e := measure()
		rows, err = append(rows, more...), errors.Join(err, e)
	}
	return rows, err
}

// manyStarts takes the time from exec to the last of ten commands started, and from SIGTERM to the end.
func (b *bench) manyStarts() ([]row, error) {
	starts, stops := map[string][]float64{}, map[string][]float64{}
	for range b.count(11) {
		for _, p := range supervisors {
			start, stop, err := b.startTen(p)
			if errors.Is(err, errUnavailable) {
				continue
			}
			if err != nil {
				return nil, err
			}
			starts[p.name] = append(starts[p.name], start.Seconds()*1000)
			if p.stop != 0 {
				stops[p.name] = append(stops[p.name], stop.Seconds()*1000)
			}
		}
	}
	details := func(of map[string][]float64) (list []string) {
		for _, p := range supervisors {
			if len(of[p.name]) > 0 {
				list = append(list, fmt.Sprintf("%s: median %.1f ms of %d", p.name, median(of[p.name]), len(of[p.name])))
			}
		}
		return list
	}
	start, verdict := median(starts["foster"]), "no peer"
	if len(starts["supervisord"]) > 0 && len(starts["s6"]) > 0 {
		verdict = "met"
		if start > median(starts["supervisord"])/5 || start > 2*median(starts["s6"]) {
			verdict = "MISSED"
		}
	}
	return []row{
		{"exec to the last of 10 commands started", "1/5 of supervisord's, 2 x s6's", fmt.Sprintf("%.1f ms", start), verdict, details(starts)},
		{"SIGTERM to the end, 10 commands", "at most 100 ms", fmt.Sprintf("%.1f ms", median(stops["foster"])), atMost(median(stops["foster"]), 100), details(stops)},
	}, nil
}

func (b *bench) startTen(p supervisorPeer) (start, stop time.Duration, err error) {
	fifo := filepath.Join(b.dir, "fifo")
	_ = os.Remove(fifo)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return 0, 0, err
	}
	line, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer line.Close()
	scripts := make([]string, 10)
	for i := range scripts {
		scripts[i] = "echo up >" + fifo + "; exec sleep 60"
	}
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	cmd, err := b.startSupervisor(ctx, p, scripts)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	in := bufio.NewReader(line)
	_ = line.SetReadDeadline(time.Now().Add(20 * time.Second))
	for range scripts {
		if _, err := in.ReadString('\n'); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return 0, 0, fmt.Errorf("%s did not start all: %w", p.name, err)
		}
	}
	start = time.Since(began)
	began = time.Now()
	if p.stop == 0 {
		_ = cmd.Process.Kill() // and with it its namespace
	} else {
		_ = cmd.Process.Signal(p.stop)
	}
	_ = cmd.Wait()
	return start, time.Since(began), nil
}

// manyIdle watches three commands that sleep.
func (b *bench) manyIdle() ([]row, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var details []string
	anon, switches := 0, 0
	type watched struct {
		name   string
		cmd    *exec.Cmd
		before int
	}
	var all []watched
	defer func() {
		cancel()
		for _, w := range all {
			_ = w.cmd.Wait()
		}
	}()
	for _, p := range supervisors {
		cmd, err := b.startSupervisor(ctx, p, []string{"exec sleep 600", "exec sleep 600", "exec sleep 600"})
		if errors.Is(err, errUnavailable) {
			continue
		}
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, watched{name: p.name, cmd: cmd})
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	for i := range all {
		all[i].before = sum(all[i].cmd.Process.Pid).switches
	}
	if err := pause(ctx, b.idle); err != nil {
		return nil, err
	}
	for _, w := range all {
		u := sum(w.cmd.Process.Pid)
		details = append(details, fmt.Sprintf("%s: %d kB private in all its processes, %d context switches", w.name, u.anon/1024, u.switches-w.before))
		if w.name == "foster" {
			anon, switches = u.anon, u.switches-w.before
		}
	}
	quiet := "met"
	if switches > 0 {
		quiet = "MISSED"
	}
	return []row{
		{"idle with 3 commands: private memory", "at most 3000000 bytes", fmt.Sprint(anon), atMost(float64(anon), 3e6), details},
		{fmt.Sprintf("idle with 3 commands, %v", b.idle), "no wake-up", fmt.Sprintf("%d context switches", switches), quiet, nil},
	}, nil
}

// sum is what a supervisor and its own processes use, but not what the commands do.
func sum(pid int) (total usage) {
	if name := firstField(fmt.Sprintf("/proc/%d/comm", pid)); name == "sleep" || name == "sh" || name == "false" || name == "yes" {
		return usage{}
	}
	if u, err := usageOf(pid); err == nil {
		total = u
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		data, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(data)) {
			child, _ := strconv.Atoi(word)
			u := sum(child)
			total.switches, total.anon, total.threads = total.switches+u.switches, total.anon+u.anon, total.threads+u.threads
		}
	}
	return total
}

// manyLines reads what one command prints through LOG=prefix.
func (b *bench) manyLines() ([]row, error) {
	const size = 1 << 30
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	line := strings.Repeat("x", 99)
	cmd, err := b.startSupervisor(ctx, supervisors[0], []string{fmt.Sprintf("yes %s | head -c %d", line, size)})
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, "FOSTER_C0_LOG=prefix")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	most, n := 0, int64(0)
	buf := make([]byte, 1<<20)
	for {
		m, err := out.Read(buf)
		n += int64(m)
		if err != nil {
			break
		}
		if n>>26 != (n-int64(m))>>26 {
			if u, err := usageOf(cmd.Process.Pid); err == nil {
				most = max(most, u.anon)
			}
		}
	}
	rate := size / 1e6 / time.Since(began).Seconds()
	if err := cmd.Wait(); err != nil {
		return nil, err
	}
	verdict := "met"
	if rate < 200 {
		verdict = "MISSED"
	}
	return []row{{"LOG=prefix, 1 GiB of 100-byte lines", "at least 200 MB/s, memory flat", fmt.Sprintf("%.0f MB/s, at most %d kB private", rate, most/1024), verdict, nil}}, nil
}

// manyCrashes has 16 commands fail all the time.
func (b *bench) manyCrashes() ([]row, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	scripts := make([]string, 16)
	for i := range scripts {
		scripts[i] = "exit 1"
	}
	cmd, err := b.startSupervisor(ctx, supervisors[0], scripts)
	if err != nil {
		return nil, err
	}
	for i := range scripts {
		for _, v := range []string{"RESTART_POLICY=OnFailure", "BACKOFF=10ms", "BACKOFF_MAX=10ms"} {
			cmd.Env = append(cmd.Env, fmt.Sprintf("FOSTER_C%d_%s", i, v))
		}
	}
	report, err := os.CreateTemp(b.dir, "report")
	if err != nil {
		return nil, err
	}
	defer report.Close()
	cmd.Env = append(cmd.Env, "FOSTER_REPORT="+report.Name())
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	state := func() (u usage, fds int) {
		u, _ = usageOf(cmd.Process.Pid)
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		return u, len(open)
	}
	if err := pause(ctx, b.idle/4); err != nil {
		return nil, err
	}
	early, earlyFDs := state()
	if err := pause(ctx, b.idle-b.idle/4); err != nil {
		return nil, err
	}
	late, lateFDs := state()
	text, _ := os.ReadFile(report.Name())
	verdict := "met"
	if late.anon > early.anon+early.anon/10 || late.threads > early.threads || lateFDs > earlyFDs+32 { // a run that starts has some
		verdict = "MISSED"
	}
	return []row{{
		fmt.Sprintf("16 commands crash-looping at 10 ms for %v", b.idle), "no growth in memory, descriptors, threads",
		fmt.Sprintf("%d to %d kB, %d to %d descriptors, %d to %d threads in %d runs", early.anon/1024, late.anon/1024, earlyFDs, lateFDs, early.threads, late.threads, strings.Count(string(text), "\n")),
		verdict, nil,
	}}, nil
}
