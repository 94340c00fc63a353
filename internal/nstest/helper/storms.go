package main

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// bound is how long anything that forks in a loop may live at most, whatever becomes of the test.
const bound = 20 * time.Second

// life is how long a program that only waits does so, if nothing ends it: longer than any test is patient.
const life = 10 * time.Minute

// comet keeps its main process, so that only a deadline ends the command, and sends a child on its way.
func comet([]string) error {
	end := rawNow() + int64(bound)
	plainSignals()
	switch rawFork() {
	case 0:
		rawComet(end)
	case failed:
		return fmt.Errorf("cannot fork")
	}
	return ready(end)
}

// storm N starts with N processes, each in a session of its own, and all of them fork from the moment it says ready:
// one that started earlier would leave the last ones no time to be born.
func storm(args []string) error {
	n, err := number(args)
	if err != nil {
		return err
	}
	var gate [2]int
	if err := unix.Pipe(gate[:]); err != nil {
		return err
	}
	end := rawNow() + int64(bound)
	plainSignals()
	for range n {
		switch rawFork() {
		case 0:
			rawPass(gate)
			rawStorm(end)
		case failed:
			return fmt.Errorf("cannot fork %d processes", n)
		}
	}
	fmt.Println("ready")
	_ = unix.Close(gate[1])
	rawSleepUntil(end)
	return nil
}

// crowd N is N sleeping processes, each in a session of its own.
func crowd(args []string) error {
	n, err := number(args)
	if err != nil {
		return err
	}
	if got := sleepers(n); got != n {
		return fmt.Errorf("cannot fork more than %d", got)
	}
	return ready(rawNow() + int64(life))
}

// fill takes every process the pids limit allows.
func fill([]string) error {
	const most = 2000
	if sleepers(most) == most {
		return fmt.Errorf("there is no pids limit")
	}
	return ready(rawNow() + int64(life))
}

func sleepers(n int) int {
	end := rawNow() + int64(life)
	plainSignals()
	for i := range n {
		switch rawFork() {
		case 0:
			sleeper(end)
		case failed:
			return i
		}
	}
	return n
}

//go:nosplit
//go:norace
func sleeper(end int64) {
	rawSetsid()
	rawSleepUntil(end)
	rawExit()
}

// ready says so and stays until end. It must not need a thread: there may be none to be had.
func ready(end int64) error {
	fmt.Println("ready")
	rawSleepUntil(end)
	return nil
}

func number(args []string) (int, error) {
	if len(args) == 0 {
		return 0, fmt.Errorf("want a number")
	}
	return strconv.Atoi(args[0])
}
