package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// namespace is PID 1 of the PID and mount namespaces that the test made. It either becomes the command under test or
// starts it and reports, on descriptor 3, what was left when it ended.
func namespace(args []string) error {
	setup, err := parse(args)
	if err != nil {
		return err
	}
	// The test binary may itself have inherited descriptors; the command is to find only those that setup names.
	if err := unix.CloseRange(4, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	unix.CloseOnExec(3)
	if err := mounts(setup); err != nil {
		return err
	}
	if setup.PidMax != 0 {
		err := os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(setup.PidMax)), 0)
		if err != nil {
			return err
		}
	}
	if !setup.Fork {
		return launch(args)
	}
	return beInit(args)
}

func parse(args []string) (wire.Setup, error) {
	var setup wire.Setup
	if len(args) < 2 {
		return setup, fmt.Errorf("want a setup and a command, got %q", args)
	}
	return setup, json.Unmarshal([]byte(args[0]), &setup)
}

// mounts gives the namespace a /proc of its own; nothing of it is seen outside.
func mounts(setup wire.Setup) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	options := ""
	if setup.HidePid {
		options = "hidepid=2"
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", flags, options); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	return nil
}

// beInit waits for the command alone and for nothing else, so that a zombie the command leaves behind is still there
// to be listed. After the report it lives until the test closes the other end of descriptor 3 or dies.
func beInit(args []string) error {
	control := os.NewFile(3, "control")
	began := time.Now()
	ended := wire.Ended{}
	command, err := os.StartProcess("/proc/self/exe", append([]string{"helper", "launch"}, args...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Env: os.Environ(),
	})
	if err != nil {
		ended.Err = err.Error()
	} else {
		letGoOfStdio()
		ended = await(command.Pid)
		ended.Elapsed = time.Since(began)
	}
	if err := json.NewEncoder(control).Encode(ended); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, control)
	return err
}

// letGoOfStdio makes the command the only holder of its pipes: their EOF is part of what is tested.
func letGoOfStdio() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
}

// await lists the namespace while the command is still a zombie, so before any of its children could be adopted and
// reaped by somebody else.
func await(pid int) wire.Ended {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return wire.Ended{Err: err.Error()}
		}
	}
	left, err := wire.List("/proc")
	ended := wire.Ended{Code: -1}
	if err != nil {
		ended.Err = err.Error()
	}
	for _, p := range left {
		if p.Pid != 1 && p.Pid != pid {
			ended.Left = append(ended.Left, p)
		}
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		ended.Err = err.Error()
	}
	if status.Exited() {
		ended.Code = status.ExitStatus()
	} else {
		ended.Signal = int(status.Signal())
	}
	return ended
}
