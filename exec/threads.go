package exec

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
)

// enoughThreads are the ones that the runtime comes to need with one goroutine:
// its monitor, the one that is blocked in a system call, one that looks for
// work meanwhile, and two to spare.
const enoughThreads = 5

// settle gives the runtime all that it will need while a command may have used
// up every process there is: it ends the program when it is refused a thread.
// On a machine with several CPUs most are there already.
func settle() {
	have, _ := runtime.ThreadCreateProfile(nil)
	ready, leave := make(chan struct{}), make(chan struct{})
	for range enoughThreads - have {
		go func() { // ends below
			runtime.LockOSThread()
			ready <- struct{}{}
			<-leave
			runtime.UnlockOSThread() // the thread goes to the runtime's idle ones
		}()
	}
	for range enoughThreads - have {
		<-ready
	}
	close(leave)
}

// Where the garbage collector would set in, in bytes: a keeper never gets there,
// an init of many commands does when they restart for days.
const (
	keeperMemory = 64 << 20
	initMemory   = 12 << 20
)

// rest puts the garbage collector to rest, whose periodic runs would wake an
// idle container every two minutes and want threads. Waiting, reaping and
// sweeping allocate nothing that grows with time.
func rest(limit int64) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(limit)
}

// runAhead has this process run before what it has to stop, where that is
// allowed (CAP_SYS_NICE): among 700 that fork for ever it gets a 700th of the
// time, and needs minutes for what is done in a second. It sleeps nearly always.
// The priority is each thread's own; what they fork does not inherit it.
func runAhead() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RTTIME, &limit) != nil || limit.Cur != unix.RLIM_INFINITY {
		return // the kernel kills who runs ahead for too long
	}
	attr := unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		return
	}
	_ = proc.Numbers("/proc/self/task", func(tid int) { _ = unix.SchedSetAttr(tid, &attr, 0) })
}
