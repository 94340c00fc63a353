// Command worker runs one task with a deadline in a workspace of its own, on
// the host or in a container. It is an example of the exec library: when an
// attempt has timed out, nothing of it writes, runs or holds a secret any more,
// and only then is the next one begun.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// codeFailed is what worker ends with when it could not do its own work; any
// other code is the task's.
const codeFailed = 125

func main() {
	root := flag.String("root", os.TempDir(), "`directory` in which workspaces are made")
	keep := flag.Bool("keep", false, "keep the workspaces of failed attempts, in ROOT/kept")
	flag.Parse()
	code, err := run(*root, *keep, flag.Args())
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
	}
	os.Exit(code)
}

func run(root string, keep bool, files []string) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	task, err := openTask(files)
	if err != nil {
		return codeFailed, err
	}
	root, err = filepath.Abs(root) // docker takes no other
	if err != nil {
		return codeFailed, fmt.Errorf("cannot find workspaces: %v", err)
	}
	// Standard output is for the result alone.
	w := &worker{root: root, keep: keep, newTarget: newTarget(os.Stderr)}
	result, err := w.run(ctx, task)
	if err != nil {
		return codeFailed, err
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return codeFailed, fmt.Errorf("cannot write result: %v", err)
	}
	return result.ExitCode, nil
}

func openTask(files []string) (*task, error) {
	var in io.Reader = os.Stdin
	switch {
	case len(files) > 1:
		return nil, fmt.Errorf("cannot run %d tasks: give one file, or none for standard input", len(files))
	case len(files) == 1 && files[0] != "-":
		file, err := os.Open(files[0])
		if err != nil {
			return nil, fmt.Errorf("cannot read task: %v", err)
		}
		defer file.Close()
		in = file
	}
	return readTask(in)
}
