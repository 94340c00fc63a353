package reaper

import (
	"fmt"
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "nursery" {
		playNursery()
		return
	}
	os.Exit(m.Run())
}

// playNursery keeps a few bystanders alive, each for a while, until SIGTERM, and tells whether one was killed by
// somebody else: with another signal than the one that it uses itself.
func playNursery() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	var alive []int
	born := 0
	fmt.Println("ready")
	for {
		select {
		case <-stop:
			for _, pid := range alive {
				bury(pid)
			}
			fmt.Println("all well:", born, "bystanders")
			return
		default:
		}
		pid, err := rawFork(unix.SIGCHLD, sleeps, 0)
		if err != nil {
			fmt.Println("no bystander:", err)
			os.Exit(1)
		}
		born++
		if alive = append(alive, pid); len(alive) > 20 {
			bury(alive[0])
			alive = alive[1:]
		}
	}
}

func bury(pid int) {
	_ = unix.Kill(pid, unix.SIGHUP)
	if e, err := Wait(pid); err != nil || e.Status.Signal() != unix.SIGHUP {
		fmt.Printf("bystander %d ended with %#x, %v\n", pid, e.Status, err)
		os.Exit(1)
	}
}
