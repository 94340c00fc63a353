package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// The programs that the test binary plays on a terminal when PLAY names one. Shells will not do: a trap does not run
// for a signal that comes right before a read, nor for one that comes while it runs.
func init() {
	switch os.Getenv("PLAY") {
	case "window":
		showWindow()
	case "editor":
		edit()
	}
}

func itself(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// showWindow shows the window's size, again with each SIGWINCH, and ends with 5 when a line is entered.
func showWindow() {
	changed := make(chan os.Signal, 8)
	signal.Notify(changed, unix.SIGWINCH)
	go func() { // ends with the program
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(5)
	}()
	for {
		size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		if err != nil {
			os.Exit(99)
		}
		fmt.Println("window", size.Row, size.Col)
		<-changed
	}
}

// edit tidies up when it is to stop, then stops, as a full-screen program does; it ends when a line is entered.
func edit() {
	stop, goOn := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTSTP)
	signal.Notify(goOn, unix.SIGCONT)
	go func() { // ends with the program
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Print("read ", line)
		os.Exit(0)
	}()
	fmt.Println("open")
	for range stop {
		fmt.Println("tidy")
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		<-goOn
		fmt.Println("again")
	}
}
