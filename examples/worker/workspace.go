package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// newWorkspace makes a directory that was never there before and that only the
// worker's user may enter.
func newWorkspace(root, id string) (string, error) {
	dir, err := os.MkdirTemp(root, id+"-*")
	if err != nil {
		return "", fmt.Errorf("cannot make workspace: %v", err)
	}
	return dir, nil
}

// discard takes the workspace of a failed attempt out of the way and returns
// where it is now, if anywhere.
func discard(workspace string, keep bool) (string, error) {
	if !keep {
		return "", remove(workspace)
	}
	aside := filepath.Join(filepath.Dir(workspace), "kept")
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return "", fmt.Errorf("cannot keep workspace: %v", err)
	}
	kept := filepath.Join(aside, filepath.Base(workspace))
	if err := os.Rename(workspace, kept); err != nil {
		return "", fmt.Errorf("cannot keep workspace: %v", err)
	}
	return kept, nil
}

// remove also removes what a task has made read-only, such as a module cache:
// a directory without write permission keeps its files even from their owner.
func remove(workspace string) error {
	if os.RemoveAll(workspace) == nil {
		return nil
	}
	// Nothing writes here any more, so nobody can put a link where WalkDir,
	// which follows none, has just seen a directory.
	_ = filepath.WalkDir(workspace, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			return os.Chmod(path, 0o700)
		}
		return nil // RemoveAll will say what is wrong
	})
	if err := os.RemoveAll(workspace); err != nil {
		return fmt.Errorf("cannot remove workspace: %v", err)
	}
	return nil
}
