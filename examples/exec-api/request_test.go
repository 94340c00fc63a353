package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARequestThatCannotBeMeantIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		message    string
	}{
		{"both users", `{"command":"id","as_root":true,"as_user":"daemon"}`, 400, "as_root or as_user, not both"},
		{"unknown field", `{"command":"id","timeout":5}`, 400, `unknown field "timeout"`},
		{"no command", `{"args":["x"]}`, 400, "command is empty"},
		{"not JSON", `command=id`, 400, "cannot read request"},
		{"two objects", `{"command":"id"} {"command":"id"}`, 400, "something follows the object"},
		{"an unknown user", `{"command":"id","as_user":"nobody-7071"}`, 400, `user "nobody-7071"`},
		{"a user with a group", `{"command":"id","as_user":"daemon:root"}`, 400, "give a name or a uid"},
		{"a negative timeout", `{"command":"id","timeout_sec":-1}`, 400, "timeout_sec -1"},
		{"a timeout beyond all time", `{"command":"id","timeout_sec":1e300}`, 400, "timeout_sec"},
		{"a NUL byte", `{"command":"id","args":["a\u0000b"]}`, 400, "NUL"},
		{"a variable without a name", `{"command":"id","env":{"":"x"}}`, 400, "not a name"},
		{"an env entry without =", `{"command":"id","env":["PATH"]}`, 400, "NAME=value"},
		{"a body beyond the bound", `{"command":"` + strings.Repeat("x", maxBody) + `"}`, 413, "too large"},
		{"a tail beyond the bound", `{"command":"id"}` + strings.Repeat(" ", maxBody), 413, "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, _ := start(t.Context(), t, newAPI(), newMark(t))
			status, answer, err := post(t.Context(), t, server.URL, c.body)
			if err != nil {
				t.Fatal(err)
			}
			if status != c.status || !strings.Contains(strings.ReplaceAll(string(answer), `\"`, `"`), c.message) {
				t.Errorf("status %d, %s; want %d and %q", status, answer, c.status, c.message)
			}
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	err := (&request{AsRoot: true, AsUser: "daemon", Timeout: -1}).validate()
	for _, want := range []string{"command is empty", "not both", "timeout_sec"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %q", err, want)
		}
	}
}

func TestAnotherSitesPageCannotRunAnything(t *testing.T) {
	server, _ := start(t.Context(), t, newAPI(), newMark(t))
	req, err := http.NewRequest(http.MethodPost, server.URL+"/process/exec", strings.NewReader(`{"command":"true"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://elsewhere.example")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", res.StatusCode)
	}
}

func TestWhatCannotBeStartedHasAShellsExitCodeAndAMessage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not-executable")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for command, code := range map[string]int{"no-such-command-7071": 127, "/no/such/path-7071": 127, file: 126} {
		r := answered(t, newAPI(), request{Command: command})
		if message := decode(t, r.Stderr); r.ExitCode != code || !strings.Contains(message, command) {
			t.Errorf("%s: exit code %d, message %q; want %d", command, r.ExitCode, message, code)
		}
	}
}

func TestArgumentsDirectoryAndEnvironmentReachTheCommandUnchanged(t *testing.T) {
	t.Setenv("EXEC_API_TEST_OWN", "the server's")
	dir := t.TempDir()
	script := `printf '%s|' "$EXEC_API_TEST_OWN" "$A" "$(pwd -P)" "$@"; echo err >&2; exit 3`
	for _, env := range []string{`{"A":"100%d $x"}`, `["A=100%d $x"]`} {
		r := answered(t, newAPI(), `{"command":"sh","args":["-c","`+strings.ReplaceAll(script, `"`, `\"`)+`","sh","a b","","*"],"cwd":"`+dir+`","env":`+env+`}`)
		if want := "the server's|100%d $x|" + dir + "|a b||*|"; decode(t, r.Stdout) != want {
			t.Errorf("stdout %q, want %q", decode(t, r.Stdout), want)
		}
		if r.ExitCode != 3 || decode(t, r.Stderr) != "err\n" || r.TimedOut {
			t.Errorf("got %+v", r)
		}
	}
}

func TestOutputIsBoundedAndTheRestIsCounted(t *testing.T) {
	const extra = 3 << 20
	r := answered(t, newAPI(), request{Command: "head", Args: []string{"-c", "4194304", "/dev/zero"}})
	if got := len(decode(t, r.Stdout)); r.ExitCode != 0 || got != maxOutput || r.StdoutDropped != extra {
		t.Errorf("exit code %d, %d bytes, %d dropped; want 0, %d, %d", r.ExitCode, got, r.StdoutDropped, maxOutput, extra)
	}
}

func TestMoreThanTheServerMayRunIsRefusedNotQueued(t *testing.T) {
	a := newAPI()
	a.running = make(chan struct{}, 1)
	mark, ready := newMark(t), newLine(t)
	server, w := start(t.Context(), t, a, mark)
	ctx, goAway := context.WithCancel(t.Context())
	go func() { _, _, _ = post(ctx, t, server.URL, treeRequest(trees[0].script, ready, mark)) }() // ended by goAway
	ready.await(t)
	status, answer, err := post(t.Context(), t, server.URL, request{Command: "true"})
	if err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("status %d, %v: %s", status, err, answer)
	}
	w.await(t) // the refused one's
	goAway()
	w.await(t)
}
