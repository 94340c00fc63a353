package nstest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fosterinit/foster/internal/nstest/wire"
)

// image is built by the first test that needs it; the janitor removes it.
var image struct {
	once sync.Once
	tag  string
	err  error
}

var containers atomic.Int64

// applets are what the rows' shell commands need.
var applets = strings.Fields("sh cat echo env grep head kill ls ps seq setsid sleep touch tr true umount yes")

// Image is the tag of an image built FROM scratch: foster, the helper, busybox.
func Image(t testing.TB) string {
	t.Helper()
	NeedEngine(t)
	busybox := NeedProgram(t, "busybox")
	foster, helper := StaticFoster(t), Helper(t)
	image.once.Do(func() {
		tag := repository + ":" + unique
		if image.err = importImage(tag, foster, helper, busybox); image.err == nil {
			image.tag = tag
		}
	})
	if image.err != nil {
		t.Fatal(image.err)
	}
	return image.tag
}

func importImage(tag, foster, helper, busybox string) error {
	if err := os.WriteFile(filepath.Join(built, imported), nil, 0o644); err != nil {
		return err
	}
	var root bytes.Buffer
	archive := tar.NewWriter(&root)
	for name, file := range map[string]string{"foster": foster, "helper": helper, "bin/busybox": busybox} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	for _, applet := range applets {
		header := &tar.Header{Name: "bin/" + applet, Linkname: "busybox", Typeflag: tar.TypeSymlink}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	// What "FROM scratch" with one ADD comes to, without a builder that may not be installed.
	cmd := exec.Command("docker", "import", "--change", "ENV PATH=/bin", "-", tag)
	cmd.Stdin = &root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the image: %w\n%s", err, out)
	}
	return nil
}

// Name is a container name that no other has.
func Name() string { return fmt.Sprintf("%s%s-%d", prefix, unique, containers.Add(1)) }

// startContainer runs argv as a container's command. The pids limit holds whatever a row does.
func (w World) startContainer(t testing.TB, argv []string) *Run {
	t.Helper()
	NeedRoot(t) // signals go straight to the container's processes
	tag, name := Image(t), w.Named
	if name == "" {
		name = Name()
	}
	args := append([]string{"run", "--name", name, "--pids-limit", "400"}, w.Docker...)
	for _, e := range w.Env {
		args = append(args, "--env", e)
	}
	cmd := exec.Command("docker", append(append(args, tag), argv...)...)
	r := &Run{t: t, world: w, program: argv[0], letGo: func() {}}
	var out, errs *os.File
	r.stdout, out = w.pipe(t, w.Stdout)
	r.stderr, errs = w.pipe(t, w.Stderr)
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Start()
	_, _ = out.Close(), errs.Close()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan wire.Ended, 1)
	exited := make(chan struct{})
	go func() { // ends with the container
		defer close(exited)
		_ = cmd.Wait()
		ended <- ending(name)
	}()
	r.ended = ended
	t.Cleanup(func() {
		_ = remove(name)
		<-exited
	})
	r.top = r.running(name, exited)
	return r
}

// running waits for the container's first process. A run may be over before it is seen; it has no pid then.
func (r *Run) running(name string, exited <-chan struct{}) int {
	r.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		over := done(exited)
		state, err := inspect(name)
		if err == nil && (state.Pid > 0 || state.Status == "exited") {
			return state.Pid
		}
		if over {
			break // the client has given up, and will not try again
		}
	}
	r.t.Fatalf("the container did not start: %s", r.stderr)
	return 0
}

func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ending asks the engine how a container ended: the client's own exit code may be the client's.
func ending(name string) wire.Ended {
	s, err := inspect(name)
	if err != nil {
		return wire.Ended{Err: fmt.Sprintf("cannot inspect %s: %v", name, err)}
	}
	return wire.Ended{Code: s.ExitCode, OOMKilled: s.OOMKilled, Elapsed: s.FinishedAt.Sub(s.StartedAt), Err: s.Error}
}
