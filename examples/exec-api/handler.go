package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/fosterinit/foster/exec"
)

const (
	// maxOutput of each stream is kept, the rest is counted; with maxRunning it
	// bounds what all clients together can make the server hold.
	maxOutput  = 1 << 20
	maxRunning = 32
)

// api holds what requests share. It is safe for concurrent use.
type api struct {
	accounts accounts
	running  chan struct{} // one slot for each command
}

func newAPI() *api {
	return &api{
		accounts: accounts{passwd: "/etc/passwd", group: "/etc/group"},
		running:  make(chan struct{}, maxRunning),
	}
}

// handler refuses what a browser sends on behalf of another site: without that
// any web page could run commands on a developer's machine.
func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /process/exec", a.processExec)
	return http.NewCrossOriginProtection().Handler(mux)
}

// reply is what a client is told about a command that ran or could not start.
type reply struct {
	ExitCode   int    `json:"exit_code"` // as a shell has it: 124 timed out, 127 not found, 128+n killed by signal n
	Stdout     string `json:"stdout_b64"`
	Stderr     string `json:"stderr_b64"`
	DurationMS int64  `json:"duration_ms"`
	TimedOut   bool   `json:"timed_out"`

	StdoutDropped int64 `json:"stdout_dropped_bytes,omitempty"`
	StderrDropped int64 `json:"stderr_dropped_bytes,omitempty"`
	Survivors     []int `json:"survivor_pids,omitempty"` // what could not be killed: honest, and hardly ever there
}

func (a *api) processExec(w http.ResponseWriter, r *http.Request) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout))
	req, err := readRequest(w, r)
	_ = connection.SetReadDeadline(time.Time{})
	if err != nil {
		refuse(w, refusalStatus(err), err)
		return
	}
	who, err := a.accounts.identify(req)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	default:
		refuse(w, http.StatusServiceUnavailable, fmt.Errorf("cannot run: %d commands are running", maxRunning))
		return
	}
	answer, err := execute(r.Context(), req, who)
	_ = connection.SetWriteDeadline(time.Now().Add(replyTimeout))
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, answer)
	case r.Context().Err() != nil: // nothing was started: the server is about to end
		refuse(w, http.StatusServiceUnavailable, err)
	default:
		refuse(w, http.StatusInternalServerError, err)
	}
}

// execute returns when nothing of the command is left: it has ended, its
// deadline has passed, or ctx is done because the client or the server goes.
// In each case the answer holds the output so far.
func execute(ctx context.Context, req *request, who identity) (*reply, error) {
	stdout, stderr := &exec.Buffer{Max: maxOutput}, &exec.Buffer{Max: maxOutput}
	cmd := exec.Command(req.Command, req.Args...)
	cmd.Dir = req.Cwd
	cmd.Env = environ(who, req.Env)
	cmd.Credential = who.credential
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Timeout = req.timeout()
	// The client waits for timeout_sec and no longer; it was not asked for a
	// time to clean up in, and what the command left behind gets none either.
	cmd.GracePeriod = 0

	res, err := cmd.Run(ctx)
	answer := new(reply)
	var failure *exec.StartError
	switch {
	case errors.As(err, &failure):
		answer.ExitCode = failure.ExitCode
		// Where a shell's user would look for it.
		fmt.Fprintf(stderr, "exec-api: %v\n", err)
		if failure.Hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", failure.Hint)
		}
	case res == nil:
		return nil, err
	default:
		if err != nil {
			slog.Info("request ended before its command", "command", req.Command, "pid", res.Pid, "reason", err)
		}
		answer.tell(res)
	}
	answer.Stdout, answer.StdoutDropped = encode(stdout)
	answer.Stderr, answer.StderrDropped = encode(stderr)
	return answer, nil
}

func (a *reply) tell(res *exec.Result) {
	a.ExitCode = res.ExitCode
	a.DurationMS = res.Duration.Milliseconds()
	a.TimedOut = res.Reason == exec.DeadlineExceeded
	for _, survivor := range res.Survivors {
		a.Survivors = append(a.Survivors, survivor.Pid)
		slog.Error("process survived", "command", survivor.Name, "pid", survivor.Pid, "reason", survivor.Reason)
	}
}

func encode(b *exec.Buffer) (text string, dropped int64) {
	return base64.StdEncoding.EncodeToString(b.Bytes()), b.Dropped()
}

func refusalStatus(err error) int {
	if errors.As(err, new(*http.MaxBytesError)) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

func refuse(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// writeJSON passes over a failed write: the client is gone, and so is the tree.
func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
