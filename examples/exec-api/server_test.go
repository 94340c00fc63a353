package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestTheEndOfTheServerEndsRunningTreesAndAnswers(t *testing.T) {
	mark, ready := newMark(t), newLine(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, newAPI()) }() // ended by stop, and received from below
	answered := make(chan reply, 1)
	go func() { // ended by the answer, or by the end of the server
		_, answer, err := post(t.Context(), t, "http://"+listener.Addr().String(), treeRequest(trees[1].script, ready, mark))
		var r reply
		if err == nil {
			err = json.Unmarshal(answer, &r)
		}
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	ready.await(t)
	stop()
	checkKilled(t, <-answered)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if left := nstest.Holders(t, mark); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
}

// serverProcess is the test binary as the server, the way a user starts it.
func serverProcess(t *testing.T) (*osexec.Cmd, string) {
	t.Helper()
	cmd := osexec.Command(os.Args[0], "-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), playServer+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	first, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(first)
	if address == "" {
		t.Fatalf("no address in %q", first)
	}
	return cmd, "http://" + address
}

func TestSIGTERMToTheServerEndsRunningTrees(t *testing.T) {
	mark, ready := newMark(t), newLine(t)
	cmd, base := serverProcess(t)
	go func() { _, _, _ = post(t.Context(), t, base, treeRequest(trees[1].script, ready, mark)) }() // ended with the server
	ready.await(t)
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if left := nstest.Holders(t, mark); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
}

// A server that is killed can do nothing itself: each command's keeper notices.
func TestAServerThatIsKilledLeavesNoTree(t *testing.T) {
	mark, ready := newMark(t), newLine(t)
	cmd, base := serverProcess(t)
	go func() { _, _, _ = post(t.Context(), t, base, treeRequest(trees[1].script, ready, mark)) }() // ended with the server
	ready.await(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := nstest.Holders(t, mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("alive: %v", left)
		}
	}
}

// The README's request must work as it stands there.
func TestTheREADMEsRequestWorks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	bodies := regexp.MustCompile(`(?s)-d '(\{.*?\})'`).FindAllStringSubmatch(string(readme), -1)
	if len(bodies) == 0 {
		t.Fatal("no curl -d '{...}' in README.md")
	}
	for _, body := range bodies {
		var req request
		if err := json.Unmarshal([]byte(body[1]), &req); err != nil {
			t.Fatal(err)
		}
		nstest.UntilProven(t, func(seconds float64) bool {
			mark := newMark(t)
			req.Env, req.Timeout = environment{"MARK": mark}, max(req.Timeout, seconds)
			return checkTimedOut(t, newAPI(), req, mark) == "so far\n"
		})
	}
}

func TestOnlyPOSTIsServed(t *testing.T) {
	server, _ := start(t.Context(), t, newAPI(), newMark(t))
	res, err := http.Get(server.URL + "/process/exec")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", res.StatusCode)
	}
}
