package main

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

// needImage returns an image with foster as entrypoint and busybox as the rest,
// built from what is on this machine; nothing is pulled.
func needImage(t *testing.T) string {
	t.Helper()
	image, err := buildImage()
	switch {
	case err == nil:
		return image
	case errors.Is(err, errNoDocker):
		nstest.Skip(t, err.Error())
	default:
		t.Fatal(err)
	}
	return ""
}

var (
	errNoDocker = errors.New("no docker engine, or no /bin/busybox to build an image from")
	imageTag    = fmt.Sprintf("foster-worker-test:%d", os.Getpid())
	buildImage  = sync.OnceValues(build)
)

const dockerfile = `FROM scratch
COPY root /
ENTRYPOINT ["/foster", "--"]
`

func build() (string, error) {
	if out, err := osexec.Command("docker", "version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %v: %s", errNoDocker, err, out)
	}
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return "", fmt.Errorf("%w: %v", errNoDocker, err)
	}
	dir, err := os.MkdirTemp("", "foster-image-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := layOut(dir, busybox); err != nil {
		return "", err
	}
	if out, err := osexec.Command("docker", "build", "--quiet", "--tag", imageTag, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build image: %v: %s", err, out)
	}
	return imageTag, nil
}

func layOut(dir string, busybox []byte) error {
	bin := filepath.Join(dir, "root", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, "busybox"), busybox, 0o755); err != nil {
		return err
	}
	for _, applet := range strings.Fields("sh setsid sleep ls wc cat pwd env touch mkdir chmod") {
		if err := os.Symlink("busybox", filepath.Join(bin, applet)); err != nil {
			return err
		}
	}
	foster := osexec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "root", "foster"), "github.com/fosterinit/foster/cmd/foster")
	foster.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := foster.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build foster: %v: %s", err, out)
	}
	return os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644)
}

// removeImage does nothing where none was built: the tag is this process's own.
func removeImage() { _ = osexec.Command("docker", "image", "rm", "--force", imageTag).Run() }

// containerState is what the engine says of name, apart from the code under test.
func containerState(name string) string {
	out, _ := osexec.Command("docker", "container", "inspect", "--format", "{{.State.Status}}", name).CombinedOutput()
	return strings.TrimSpace(string(out))
}

func checkNoContainer(t *testing.T, name string) {
	t.Helper()
	if state := containerState(name); !strings.Contains(state, "No such container: "+name) {
		t.Errorf("container %s: %s", name, state)
	}
	if client := nstest.Holders(t, name); len(client) > 0 {
		t.Errorf("docker's client for %s is alive: %v", name, client)
	}
}
