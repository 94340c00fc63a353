package supervisor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/exec"
)

func TestTheReportsLineHasTheContractsKeysInOrder(t *testing.T) {
	r := &exec.Result{
		Name: "web", Attempt: 2, Pid: 7, Reason: exec.DeadlineExceeded, ExitCode: 124, Signal: unix.SIGKILL,
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Duration: 1500 * time.Millisecond, UserTime: 2 * time.Second,
		SystemTime: 3 * time.Millisecond, MaxRSS: 4096, Killed: 5, Escaped: 6,
		Survivors: []exec.Survivor{{Pid: 8, UID: 1000, Name: "dd", State: "D", Reason: "in an uninterruptible system call"}},
	}
	const want = `{"name":"web","attempt":2,"pid":7,"reason":"DeadlineExceeded","exit_code":124,"signal":"SIGKILL",` +
		`"started_at":"2026-01-02T03:04:05.006Z","duration_ms":1500,"user_ms":2000,"system_ms":3,"max_rss_bytes":4096,"killed":5,"escaped":6,` +
		`"survivors":[{"pid":8,"uid":1000,"name":"dd","state":"D","reason":"in an uninterruptible system call"}]}`
	if got := marshal(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got := marshal(t, &exec.Result{})
	if !strings.Contains(got, `"signal":"",`) || !strings.HasSuffix(got, `"survivors":[]}`) {
		t.Errorf("what there is none of: %s", got)
	}
}

func marshal(t *testing.T, r *exec.Result) string {
	t.Helper()
	text, err := json.Marshal(newReportLine(r))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEverySignalIsNamedInTheReport(t *testing.T) {
	for sig, want := range map[unix.Signal]string{unix.SIGHUP: "SIGHUP", 34: "SIGRTMIN", 35: "SIGRTMIN+1", 64: "SIGRTMIN+30"} {
		if got := newReportLine(&exec.Result{Signal: sig}).Signal; got != want {
			t.Errorf("%d: got %s, want %s", int(sig), got, want)
		}
	}
}

// quiet logs where a test that fails shows it.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

func TestARunLeavesOneLineMoreAndAMessage(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := exec.CatchSignals(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("report", []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Relative paths: the run leaves the directory.
	plan := load(t, []string{"--report", "report", "--termination-message", "message", "sh", "-c", "exit 3"}, os.Environ())
	code, err := plan.Run(quiet(), nil)
	if err != nil || code != 3 {
		t.Errorf("got %d, %v", code, err)
	}
	lines := strings.Split(read(t, filepath.Join(dir, "report")), "\n")
	var line reportLine
	if len(lines) != 3 || lines[0] != "{}" || json.Unmarshal([]byte(lines[1]), &line) != nil || line.ExitCode != 3 || line.Reason != exec.Error {
		t.Errorf("got %q", lines)
	}
	if got := read(t, filepath.Join(dir, "message")); !strings.HasPrefix(got, "sh: Error, exit code 3 after ") {
		t.Errorf("got %q", got)
	}
}

func TestASuccessCodeIsASuccess(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := exec.CatchSignals(); err != nil {
		t.Fatal(err)
	}
	message := filepath.Join(t.TempDir(), "message")
	plan := load(t, []string{"--success-exit-codes", "0,3", "--termination-message", message, "sh", "-c", "exit 3"}, os.Environ())
	code, err := plan.Run(quiet(), nil)
	if err != nil || code != 0 {
		t.Errorf("got %d, %v", code, err)
	}
	if _, err := os.Stat(message); err == nil {
		t.Error("a success left a message")
	}
}

func TestATerminationMessageIsCutToWhatKubernetesReads(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := exec.CatchSignals(); err != nil {
		t.Fatal(err)
	}
	message := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(message, make([]byte, 10000), 0o644); err != nil { // of the run before
		t.Fatal(err)
	}
	plan := load(t, []string{"--termination-message", message, "/no/such/" + strings.Repeat("ä", 3000)}, os.Environ())
	if _, err := plan.Run(quiet(), nil); err == nil {
		t.Error("no error")
	}
	if got := read(t, message); len(got) > 4096 || len(got) < 4090 || !utf8.ValidString(got) || !strings.HasPrefix(got, "/no/such/ä") {
		t.Errorf("%d bytes: %.40q", len(got), got)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestASentenceSaysWhatHappenedInOrder(t *testing.T) {
	r := &exec.Result{
		Name: "web", Reason: exec.DeadlineExceeded, ExitCode: 124, Signal: unix.SIGKILL, Duration: 1500 * time.Millisecond, Killed: 2,
		Survivors: []exec.Survivor{{Pid: 8, UID: 1, Name: "dd", State: "D", Reason: "because"}},
	}
	const want = "web: DeadlineExceeded, exit code 124, ended by SIGKILL after 1.5s, 2 processes killed" +
		"; survived: process 8 (dd) of uid 1 in state D: because"
	if got := sentence(r, nil); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r = &exec.Result{Name: "web", Reason: exec.StartFailed, ExitCode: 127}
	if got := sentence(r, unix.ENOENT); got != fmt.Sprintf("web: StartError: %v, exit code 127 after 0s", unix.ENOENT) {
		t.Errorf("got %s", got)
	}
}

func FuzzCutTextCutsNoRuneAndNoMoreThanItMust(f *testing.F) {
	f.Add("", 0)
	f.Add("abc", 2)
	f.Add("aäöü€😀", 5)
	f.Add("😀😀", 7)
	f.Add("\x80\x80\x80\x80\x80\x80", 5)
	f.Fuzz(func(t *testing.T, s string, size int) {
		size = max(0, min(size, 1<<16))
		got := cutText(s, size)
		switch {
		case !strings.HasPrefix(s, got) || len(got) > size:
			t.Errorf("%q cut to %d is %q", s, size, got)
		case len(got) < min(size, len(s))-(utf8.UTFMax-1):
			t.Errorf("%q cut to %d loses %d bytes", s, size, size-len(got))
		case utf8.ValidString(s) && !utf8.ValidString(got):
			t.Errorf("%q cut to %d has half a character: %q", s, size, got)
		}
	})
}

func TestTheReportLineHasNoFieldThatTheContractLacks(t *testing.T) {
	if n := reflect.TypeFor[reportLine]().NumField(); n != 14 {
		t.Errorf("%d fields", n)
	}
}
