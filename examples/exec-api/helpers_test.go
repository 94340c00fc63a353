package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// patience is far more than anything here needs; it only ends a test that hangs.
const patience = 2 * time.Minute

// playServer makes the test binary be the server, for tests that end a process.
const playServer = "EXEC_API_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(playServer) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(nstest.Childless(m.Run()))
}

var marks atomic.Int64

// newMark is a duration for sleep(1) that no other process of the machine
// sleeps: an argument stays readable where the environment has been cleared.
// What a failed test leaves behind ends with the test all the same.
func newMark(t *testing.T) string {
	t.Helper()
	mark := fmt.Sprintf("7071.%d%03d", os.Getpid(), marks.Add(1))
	nstest.Marked(t, mark)
	return mark
}

// line is a FIFO on which a child says that it is ready.
type line struct {
	path string
	file *os.File
}

// newLine opens both ends, so that neither side waits for the other.
func newLine(t *testing.T) line {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ready")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return line{path, file}
}

func (l line) await(t *testing.T) {
	t.Helper()
	if !l.said(t, patience) {
		t.Fatal("no child was ready")
	}
}

func (l line) said(t *testing.T, within time.Duration) bool {
	t.Helper()
	if err := l.file.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, err := bufio.NewReader(l.file).ReadString('\n')
	return err == nil
}

// ending is what was so at the moment the handler returned.
type ending struct {
	holders []int
	body    []byte
}

// witness wraps the handler: it scans before anything that follows the
// handler's return can make the outcome look better than it was.
type witness struct {
	t       *testing.T
	handler http.Handler
	mark    string
	ended   chan ending
}

type recorder struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) Write(p []byte) (int, error) {
	r.body.Write(p)
	return r.ResponseWriter.Write(p)
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	record := &recorder{ResponseWriter: rw}
	w.handler.ServeHTTP(record, r)
	w.ended <- ending{nstest.Holders(w.t, w.mark), record.body.Bytes()}
}

// start serves a on a real socket, watched for mark.
func start(ctx context.Context, t *testing.T, a *api, mark string) (*httptest.Server, *witness) {
	t.Helper()
	w := &witness{t: t, handler: a.handler(), mark: mark, ended: make(chan ending, 1)}
	server := httptest.NewUnstartedServer(w)
	server.Config = newServer(ctx, w)
	server.Start()
	t.Cleanup(server.Close)
	return server, w
}

func (w *witness) await(t *testing.T) ending {
	t.Helper()
	select {
	case e := <-w.ended:
		return e
	case <-time.After(patience):
		t.Fatalf("the handler did not return; alive: %v", nstest.Holders(t, w.mark))
		return ending{}
	}
}

// post sends body, a request or a raw string, and returns what came back.
func post(ctx context.Context, t *testing.T, base string, body any) (int, []byte, error) {
	t.Helper()
	text, isText := body.(string)
	if !isText {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/process/exec", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// answered posts a request that must be answered with 200.
func answered(t *testing.T, a *api, body any) reply {
	t.Helper()
	server, _ := start(t.Context(), t, a, newMark(t))
	status, answer, err := post(t.Context(), t, server.URL, body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	return parse(t, answer)
}

func parse(t *testing.T, answer []byte) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal(answer, &r); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return r
}

func decode(t *testing.T, text string) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
