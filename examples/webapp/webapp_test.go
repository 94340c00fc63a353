// Package webapp is an example of several commands in one container; there is nothing to import.
package webapp

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

func TestMain(m *testing.M) { os.Exit(nstest.Main(m)) }

func TestTheMigrationRunsThenNginxServesThenTheWorkerWorksAndAllEnds(t *testing.T) {
	nstest.NeedProgram(t, "nginx")
	dir := t.TempDir()
	for _, name := range []string{"nginx.conf", "migrate.sh", "worker.sh"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := os.ReadFile("foster.env")
	if err != nil {
		t.Fatal(err)
	}
	w := nstest.Subreaper()
	w.Env = append(strings.Split(strings.TrimSpace(string(settings)), "\n"), "FOSTER_WORKING_DIR="+dir)
	r := w.Start(t).Expect("migrate | migrating\n").Expect("worker | working\n")
	answer, err := http.Get("http://127.0.0.1:17071/")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if string(body) != "hello from the migration\n" {
		t.Errorf("nginx says %q", body)
	}
	o := r.Signal(unix.SIGTERM).Wait().Exits(0).Prints("worker | stopping\n").Ran("migrate", 0).Ran("worker", 0).Ran("nginx", 0).Clean()
	all := o.Reports()
	if last := all[len(all)-1].Name; last != "nginx" {
		t.Errorf("%s ended last\n%s", last, o)
	}
}
