package fdio

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const bound = 10 * time.Second

func TestAReaderThatReadsGetsAll(t *testing.T) {
	read, write := pipe(t)
	text := strings.Repeat("0123456789", 50_000)
	got := make(chan string)
	go func() { // ends when it has all
		b := make([]byte, len(text))
		for n := 0; n < len(b); {
			m, err := read.Read(b[n:])
			if err != nil {
				break
			}
			n += m
		}
		got <- string(b)
	}()
	if n, err := (Writer{FD: int(write.Fd()), Wait: bound}).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if <-got != text {
		t.Error("something else arrived")
	}
}

func TestAReaderThatDoesNotReadIsWaitedForSoLongAndNoLonger(t *testing.T) {
	_, write := pipe(t)
	w := Writer{FD: int(write.Fd()), Wait: 50 * time.Millisecond}
	began := time.Now()
	if n, err := w.Write(make([]byte, 1<<20)); n == 0 || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d, %v", n, err)
	}
	if took := time.Since(began); took < w.Wait || took > bound {
		t.Errorf("took %v", took)
	}
}

func TestAReaderThatHasGoneIsAnError(t *testing.T) {
	read, write := pipe(t)
	_ = read.Close()
	if _, err := (Writer{FD: int(write.Fd()), Wait: bound}).Write([]byte("x")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("%v", err)
	}
}

// A terminal is writable as soon as there is room for a byte, and blocks until there is room for all.
func TestATerminalThatNobodyReadsDoesNotBlock(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	done := make(chan error)
	go func() { // ends with the write
		_, err := Writer{FD: int(slave.Fd()), Wait: 50 * time.Millisecond}.Write(make([]byte, 1<<20))
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%v", err)
		}
	case <-time.After(bound):
		_ = master.Close() // lets the writer go
		t.Error("blocked")
	}
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = read.Close()
		_ = write.Close()
	})
	return read, write
}
