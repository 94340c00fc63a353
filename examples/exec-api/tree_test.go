package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fosterinit/foster/internal/nstest"
)

// trees are commands that try to outlive their request, each in a way that
// ended some exec API. $1 is the FIFO to say ready on, $2 the mark.
var trees = []struct{ name, script string }{
	{"a plain child", `echo so far; sleep "$2" & echo ready > "$1"; wait`},
	{"a setsid child", `echo so far; setsid sleep "$2" & echo ready > "$1"; wait`},
	{
		"a double fork with a cleared environment",
		`echo so far; (setsid sh -c 'env -i sleep '"$2"' & env -i sleep '"$2" &); echo ready > "$1"; sleep "$2"`,
	},
	{"a pipeline", `echo so far; echo ready > "$1"; sleep "$2" | cat`},
	{"a child that ignores all it can", `echo so far; (trap "" TERM HUP INT QUIT; setsid sleep "$2") & echo ready > "$1"; wait`},
	{"a stopped child", `echo so far; sleep "$2" & kill -STOP $!; echo ready > "$1"; wait`},
	{"a pipe holder of another group after its leader", `echo so far; setsid sh -c 'sleep '"$2"' & echo ready > '"$1"'; kill -KILL $$' & sleep "$2"`},
}

func treeRequest(script string, l line, mark string) request {
	return request{Command: "sh", Args: []string{"-c", script, "sh", l.path, mark}}
}

func TestOnTimeoutTheTreeIsGoneBeforeTheHandlerReturns(t *testing.T) {
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			t.Parallel()
			nstest.UntilProven(t, func(seconds float64) bool {
				mark, ready := newMark(t), newLine(t)
				req := treeRequest(tree.script, ready, mark)
				req.Timeout = seconds
				out := checkTimedOut(t, newAPI(), req, mark)
				if !ready.said(t, time.Second) {
					return false
				}
				if out != "so far\n" {
					t.Errorf("stdout %q, want the output so far", out)
				}
				return true
			})
		})
	}
}

// checkTimedOut posts req, which must time out, and returns what it printed.
func checkTimedOut(t *testing.T, a *api, req request, mark string) string {
	t.Helper()
	server, w := start(t.Context(), t, a, mark)
	status, answer, err := post(t.Context(), t, server.URL, req)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	if left := w.await(t).holders; len(left) > 0 {
		t.Errorf("alive when the handler returned: %v", left)
	}
	r := parse(t, answer)
	if !r.TimedOut || r.ExitCode != 124 || len(r.Survivors) > 0 {
		t.Errorf("got %+v, want timed_out, exit_code 124, no survivors", r)
	}
	if float64(r.DurationMS) < req.Timeout*1000 || r.DurationMS > patience.Milliseconds() {
		t.Errorf("duration_ms %d with a deadline of %v s", r.DurationMS, req.Timeout)
	}
	return decode(t, r.Stdout)
}

func TestWhenTheClientGoesAwayTheTreeIsGoneBeforeTheHandlerReturns(t *testing.T) {
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			t.Parallel()
			mark, ready := newMark(t), newLine(t)
			server, w := start(t.Context(), t, newAPI(), mark)
			ctx, goAway := context.WithCancel(t.Context())
			defer goAway()
			failed := make(chan error, 1)
			go func() { // ended by goAway, and received from below
				_, _, err := post(ctx, t, server.URL, treeRequest(tree.script, ready, mark))
				failed <- err
			}()
			ready.await(t)
			goAway()
			end := w.await(t)
			if err := <-failed; err == nil {
				t.Error("the client was answered before it went away")
			}
			if len(end.holders) > 0 {
				t.Errorf("alive when the handler returned: %v", end.holders)
			}
			checkKilled(t, parse(t, end.body))
		})
	}
}

func checkKilled(t *testing.T, r reply) {
	t.Helper()
	if r.TimedOut || r.ExitCode != 128+9 {
		t.Errorf("timed_out %v, exit_code %d, want false, 137", r.TimedOut, r.ExitCode)
	}
	if out := decode(t, r.Stdout); out != "so far\n" {
		t.Errorf("stdout %q, want the output so far", out)
	}
}

// A client that sends its body in chunks shows its end apart from its last
// byte; a server that reads one JSON value and no further never sees it go.
func TestAClientThatSentChunksIsMissedToo(t *testing.T) {
	mark, ready := newMark(t), newLine(t)
	server, w := start(t.Context(), t, newAPI(), mark)
	ctx, goAway := context.WithCancel(t.Context())
	defer goAway()
	body := `{"command":"sh","args":["-c","echo ready > ` + ready.path + `; exec sleep ` + mark + `"]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/process/exec", struct{ *strings.Reader }{strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { // ended by goAway, and received from below
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
		}
		failed <- err
	}()
	ready.await(t)
	goAway()
	if left := w.await(t).holders; len(left) > 0 {
		t.Errorf("alive when the handler returned: %v", left)
	}
	if err := <-failed; err == nil {
		t.Error("the client was answered before it went away")
	}
}

func TestWhatACommandLeavesBehindIsGoneAtOnce(t *testing.T) {
	mark, ready := newMark(t), newLine(t)
	server, w := start(t.Context(), t, newAPI(), mark)
	script := `setsid sleep "$2" & echo up; echo ready > "$1"; exit 7`
	began := time.Now()
	_, answer, err := post(t.Context(), t, server.URL, treeRequest(script, ready, mark))
	if err != nil {
		t.Fatal(err)
	}
	if left := w.await(t).holders; len(left) > 0 {
		t.Errorf("alive when the handler returned: %v", left)
	}
	r := parse(t, answer)
	if r.ExitCode != 7 || r.TimedOut || decode(t, r.Stdout) != "up\n" {
		t.Errorf("got %+v, want exit code 7 and the output", r)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("took %v", took)
	}
}
