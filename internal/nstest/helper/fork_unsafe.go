package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What runs between rawFork and rawExit in a child has one thread and no scheduler, no collector, no stack growth: raw
// system calls in nosplit functions only, as gVisor forks its stubs. In exchange a fork costs 100 µs and needs no
// compiler on the machine and no C library in the image.

// failed is what rawFork returns when there was no process to be had.
const failed = ^uintptr(0)

//go:nosplit
//go:norace
func rawFork() uintptr {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return failed
	}
	return pid
}

//go:nosplit
//go:norace
func rawExit() {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

//go:nosplit
//go:norace
func rawSetsid() {
	syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
}

// rawNow is the monotonic clock in nanoseconds.
//
//go:nosplit
//go:norace
func rawNow() int64 {
	var ts unix.Timespec
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0)
	return int64(ts.Sec)*1e9 + int64(ts.Nsec)
}

//go:nosplit
//go:norace
func rawSleepUntil(end int64) {
	for rawNow() < end {
		ts := unix.Timespec{Nsec: 50e6}
		syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	}
}

// rawPass waits until the last writer of a pipe is gone.
//
//go:nosplit
//go:norace
func rawPass(gate [2]int) {
	var b byte
	syscall.RawSyscall(unix.SYS_CLOSE, uintptr(gate[1]), 0, 0)
	syscall.RawSyscall(unix.SYS_READ, uintptr(gate[0]), uintptr(unsafe.Pointer(&b)), 1)
}

// rawComet flees: every generation is a child, in a session of its own, of a parent that is gone. It ends by itself.
//
//go:nosplit
//go:norace
func rawComet(end int64) {
	for rawNow() < end {
		switch rawFork() {
		case 0:
			rawSetsid()
		case failed:
			syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			rawExit()
		}
	}
	rawExit()
}

// rawStorm multiplies up to whatever limit there is and keeps changing: each process is its own session and every
// second fork replaces its parent, so at the limit a slot that a kill frees is taken at once. It ends by itself.
//
//go:nosplit
//go:norace
func rawStorm(end int64) {
	rawSetsid()
	for forks := 1; rawNow() < end; {
		switch rawFork() {
		case 0:
			rawSetsid()
			forks = 1
		case failed:
			syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			if forks%2 == 0 {
				rawExit()
			}
			forks++
		}
	}
	rawExit()
}

// disposition sets what the kernel does with a signal, past the Go runtime, which holds handlers for nearly all.
func disposition(n int, handler uintptr) {
	action := [8]uintptr{handler}
	syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// plainSignals gives every signal its default and lets a dead child vanish, so that none holds a slot as a zombie.
func plainSignals() {
	for n := 1; n <= 64; n++ {
		disposition(n, 0)
	}
	const ignore = 1
	disposition(int(unix.SIGCHLD), ignore)
}

// uintptrOf is a buffer as a system call wants it; the caller keeps the buffer alive.
func uintptrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
