package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestArgumentsAndEnvironmentArriveAsTheBytesTheyAre(t *testing.T) {
	t.Parallel()
	const wild = "\xff\xfe %s $HOME \\ \n\t'\" \u2028 \xc3"
	dir := filepath.Join(t.TempDir(), "\xff dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := sh(`printf '%s\0' "$@" "$WILD" "$PWD" "$#"`, wild, "", "last")
	cmd.Env = []string{"WILD=" + wild, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = dir
	want := strings.Join([]string{wild, "", "last", wild, dir, "3", ""}, "\x00")
	if _, out := run(t, cmd); out != want {
		t.Errorf("got  %q\nwant %q", out, want)
	}
}

func TestAnEmptyEnvironmentIsEmptyAndNoneIsTheCallers(t *testing.T) {
	t.Setenv("EXEC_TEST_OWN", "seen")
	cmd := sh(`echo "$EXEC_TEST_OWN"`)
	if _, out := run(t, cmd); out != "seen\n" {
		t.Errorf("nil: got %q", out)
	}
	env, err := filepath.EvalSymlinks("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	cmd = Command(env)
	cmd.Env = []string{}
	if _, out := run(t, cmd); out != "" {
		t.Errorf("empty: got %q", out)
	}
}

func TestStdinComesFromAReader(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 1<<14) // more than a pipe holds
	cmd := Command("cat")
	cmd.Stdin = strings.NewReader(text)
	if res, out := run(t, cmd); res.ExitCode != 0 || out != text {
		t.Errorf("got %+v and %d bytes of %d", res, len(out), len(text))
	}
	cmd = sh("exit 3") // it reads nothing of it
	cmd.Stdin = strings.NewReader(text)
	if res, _ := run(t, cmd); res.ExitCode != 3 {
		t.Errorf("got %+v", res)
	}
	if _, out := run(t, Command("cat")); out != "" {
		t.Errorf("without Stdin there is %q to read", out)
	}
}

func TestAReaderThatBlocksDoesNotHoldUpWait(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	defer write.Close()
	cmd := sh("exit 3")
	cmd.Stdin = read
	if res, _ := run(t, cmd); res.ExitCode != 3 {
		t.Errorf("got %+v", res)
	}
}

// solo is a writer that is not to be used by two goroutines; the race detector would tell.
type solo struct{ bytes.Buffer }

func TestOneWriterForBothGetsAllInOrder(t *testing.T) {
	t.Parallel()
	var out solo
	cmd := sh("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done")
	cmd.Stdout, cmd.Stderr = &out, &out
	if _, err := cmd.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), " "); got != "o1 e1 o2 e2 o3 e3 o4 e4 o5 e5" {
		t.Errorf("got %q", got)
	}
}

// writerList cannot be compared, not even with itself.
type writerList []io.Writer

func (l writerList) Write(p []byte) (int, error) { return io.MultiWriter(l...).Write(p) }

func TestTwoWritersAreKeptApart(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	cmd := sh("echo out; echo err >&2")
	cmd.Stdout, cmd.Stderr = writerList{&out}, writerList{&errs}
	if _, err := cmd.Run(t.Context()); err != nil || out.String() != "out\n" || errs.String() != "err\n" {
		t.Errorf("got %q, %q, %v", &out, &errs, err)
	}
}

// brokenWriter fails after its first write.
type brokenWriter struct{ writes int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func TestAWriterThatFailsDoesNotHoldUpTheCommand(t *testing.T) {
	t.Parallel()
	cmd := sh("head -c 1000000 /dev/zero; exit 3")
	cmd.Stdout = &brokenWriter{}
	start(t, cmd)
	if res := wait(t, cmd); res.ExitCode != 3 {
		t.Errorf("got %+v", res)
	}
}

// slowWriter takes its time for the first write.
type slowWriter struct {
	once sync.Once
	n    int
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { time.Sleep(3 * outputBound) })
	w.n += len(p)
	return len(p), nil
}

func TestASlowWriterGetsAllThatWasPrinted(t *testing.T) {
	t.Parallel()
	const size = 64000 // a pipe holds it, a copy takes several reads
	cmd := sh("head -c 64000 /dev/zero")
	var out slowWriter
	cmd.Stdout = &out
	start(t, cmd)
	if res := wait(t, cmd); res.ExitCode != 0 || out.n != size {
		t.Errorf("got %d bytes of %d, %+v", out.n, size, res)
	}
}

func TestABufferKeepsItsMaxAndCountsTheRest(t *testing.T) {
	t.Parallel()
	out := Buffer{Max: 1000}
	cmd := sh("head -c 3000000 /dev/zero")
	cmd.Stdout = &out
	start(t, cmd)
	wait(t, cmd)
	if len(out.Bytes()) != 1000 || out.Dropped() != 2999000 {
		t.Errorf("kept %d, dropped %d", len(out.Bytes()), out.Dropped())
	}
}

func TestABufferWithoutRoomKeepsNothing(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v != nil {
			t.Error(v)
		}
	}()
	for _, limit := range []int{0, -1} {
		b := Buffer{Max: limit}
		if n, err := b.Write([]byte("abc")); n != 3 || err != nil || len(b.Bytes()) != 0 || b.Dropped() != 3 {
			t.Errorf("Max %d: wrote %d, %v; kept %q, dropped %d", limit, n, err, b.Bytes(), b.Dropped())
		}
	}
}

func TestABufferMayBeReadAtAnyTime(t *testing.T) {
	t.Parallel()
	out := Buffer{Max: 10}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				_, _ = out.Write([]byte("abc"))
				for i := range out.Bytes() { // a copy
					out.Bytes()[i] = 'x'
				}
			}
		})
	}
	all.Wait()
	if got := string(out.Bytes()); got != "abcabcabca" || out.Dropped() != 4*100*3-10 {
		t.Errorf("kept %q, dropped %d", got, out.Dropped())
	}
}
