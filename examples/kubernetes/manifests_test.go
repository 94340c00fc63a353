// Package kubernetes is an example of manifests; there is nothing to import.
package kubernetes

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gopkg.in/yaml.v3"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestMain(m *testing.M) { os.Exit(nstest.Main(m)) }

// container is what a manifest says of its only one.
type container struct {
	Args []string
	Env  []struct{ Name, Value string }
}

// load reads a manifest, with dir for the paths of the image and port for the proxy's.
func load(t *testing.T, name, dir, port string) container {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	there := strings.NewReplacer("/app/", dir+"/", "/run/secrets/db/", dir+"/", "8080", port, "nginx -g 'daemon off;'", dir+"/proxy").Replace(string(text))
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []container }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(there), &manifest); err != nil {
		t.Fatal(err)
	}
	all := manifest.Spec.Template.Spec.Containers
	if len(all) != 1 || len(all[0].Env) == 0 {
		t.Fatalf("%s: got %+v", name, all)
	}
	return all[0]
}

func (c container) start(t *testing.T, extra ...string) *nstest.Run {
	w := nstest.PID1()
	for _, e := range c.Env {
		w.Env = append(w.Env, e.Name+"="+e.Value)
	}
	w.Env = append(w.Env, extra...)
	return w.Start(t, append([]string{"--"}, c.Args...)...)
}

// programs makes stand-ins for those of the image.
func programs(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheDeploymentMigratesThenServesAndStops(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dir := programs(t, map[string]string{
		"migrate": `echo "migrate $1 $DB_PASSWORD"`, "proxy": "echo proxy; exec sleep inf",
		"web": "trap 'exit 0' TERM; echo web $DB_PASSWORD; while :; do sleep 0.01; done",
	})
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, "deployment.yaml", dir, port)
	c.Args = []string{dir + "/web"} // the image's CMD
	o := c.start(t).Expect("web\n").Signal(unix.SIGTERM).Wait().Exits(0).Ran("migrate", 0).Ran("main", 0).Ran("proxy", 143).Clean()
	if o.Stdout != "migrate --all s3cr3t\nproxy\nweb\n" {
		t.Errorf("got %q", o.Stdout)
	}
}

func TestTheJobEndsWith124WhenItsDeadlineHasPassed(t *testing.T) {
	dir := programs(t, map[string]string{"report": `[ "$1" = --yesterday ] || exit 1; setsid sleep 7071 & sleep 7071`})
	c := load(t, "job.yaml", dir, "8080")
	for i := range c.Env {
		if c.Env[i].Name == "FOSTER_TIMEOUT" {
			c.Env[i].Value = "300ms"
		}
	}
	c.start(t).Wait().Exits(124).Ends("DeadlineExceeded").Clean()
}
