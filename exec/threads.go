package exec

import (
	"runtime"
	"runtime/debug"
)

// memoryLimit is where the garbage collector sets in. Until then it rests: its
// periodic runs would wake an idle container every two minutes.
const memoryLimit = 32 << 20

// settle gives the runtime all that it will need while a command may have used
// up every process there is. The runtime ends the program when it is refused a
// thread, so threads are started now and left to it: with one P and one
// goroutine it needs the thread that is blocked in a system call, one that
// takes the P over, and one to spare.
func settle() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	const spare = 2
	ready, leave := make(chan struct{}), make(chan struct{})
	for range spare {
		go func() { // ends below
			runtime.LockOSThread()
			ready <- struct{}{}
			<-leave
			runtime.UnlockOSThread() // the thread goes to the runtime's idle ones
		}()
	}
	for range spare {
		<-ready
	}
	close(leave)
}
