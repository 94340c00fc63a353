package nstest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// socket is where the engine listens on the machine whose processes the tests look at.
const socket = "/var/run/docker.sock"

// engine is asked over its socket for what is asked often: its command line client takes as long as a container.
var engine = &http.Client{Transport: &http.Transport{
	DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	},
}}

// call reads the engine's answer into into, if there is to be one.
func call(method, path string, into any) error {
	request, err := http.NewRequest(method, "http://engine"+path, nil)
	if err != nil {
		return err
	}
	response, err := engine.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// state is what the engine says of a container.
type state struct {
	Pid                   int
	Status                string
	ExitCode              int
	OOMKilled             bool
	Error                 string
	StartedAt, FinishedAt time.Time
}

func inspect(name string) (state, error) {
	var container struct{ State state }
	err := call(http.MethodGet, "/containers/"+name+"/json", &container)
	return container.State, err
}

func remove(name string) error {
	return call(http.MethodDelete, "/containers/"+name+"?force=1&v=1", nil)
}

var noEngine = sync.OnceValue(func() error {
	if _, err := exec.LookPath("docker"); err != nil {
		return err
	}
	return call(http.MethodGet, "/_ping", nil)
})

// NeedEngine skips a test that needs a Docker engine on this machine.
func NeedEngine(t testing.TB) {
	t.Helper()
	if err := noEngine(); err != nil {
		Skip(t, fmt.Sprintf("no Docker engine: %v", err))
	}
}

// Engine runs the docker client and returns its output.
func Engine(t testing.TB, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command("docker", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
