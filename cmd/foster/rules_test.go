package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fosterinit/foster/"

// layers in the order in which they may import each other: an earlier one a later one, never the other way round.
var layers = []string{"cmd/foster", "init", "exec", "reaper"}

// source is one Go file of foster: no test, no example, no test support.
type source struct {
	path, dir string // below the module's root
	file      *ast.File
}

func sources(t *testing.T) (all []source) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			// internal/nstest is test code that several packages share.
			if rel == "examples" || rel == "internal/nstest" || d.Name() == "testdata" || rel != "." && d.Name()[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		all = append(all, source{rel, filepath.ToSlash(filepath.Dir(rel)), file})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImportsGoOneWay(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.dir] = true
		for _, spec := range s.file.Imports {
			path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours {
				continue
			}
			from, to := slices.Index(layers, s.dir), slices.Index(layers, path)
			switch {
			case from >= 0 && to >= 0 && to <= from:
				t.Errorf("%s imports %s, which stands above it", s.path, path)
			case from < 0 && to >= 0:
				t.Errorf("%s imports %s: internal packages are leaves", s.path, path)
			case strings.HasPrefix(path, "internal/nstest"):
				t.Errorf("%s imports %s: that is for tests", s.path, path)
			}
		}
	}
	for _, layer := range layers {
		if !seen[layer] {
			t.Errorf("no source in %s: the rule holds nothing", layer)
		}
	}
}

// waits are the ways to wait for a child. A second waiter steals the first one's statuses.
var waits = []string{
	"unix.Wait4", "unix.Waitid", "syscall.Wait4",
	"unix.SYS_WAIT4", "unix.SYS_WAITID", "syscall.SYS_WAIT4", "syscall.SYS_WAITID",
}

func TestOnlyTheReaperWaits(t *testing.T) {
	found := false
	for _, s := range sources(t) {
		for _, name := range selectors(s.file) {
			if slices.Contains(waits, name) {
				found = true
				if s.dir != "reaper" {
					t.Errorf("%s uses %s", s.path, name)
				}
			}
		}
	}
	if !found {
		t.Error("nobody waits: the rule looks for the wrong names")
	}
}

func TestOnlyMainExits(t *testing.T) {
	found := false
	for _, s := range sources(t) {
		if slices.Contains(selectors(s.file), "os.Exit") {
			found = true
			// A keeper is a program of its own, only that its main is package exec's.
			if s.file.Name.Name != "main" && s.path != filepath.Join("exec", "keeper.go") {
				t.Errorf("%s calls os.Exit", s.path)
			}
		}
	}
	if !found {
		t.Error("nobody exits: the rule looks for the wrong name")
	}
}

// selectors lists every x.Y of a file with x as the name of its package, whatever it was imported as.
func selectors(file *ast.File) (names []string) {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if spec.Name != nil {
			imported[spec.Name.Name] = path[strings.LastIndex(path, "/")+1:]
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				pkg := x.Name
				if real, renamed := imported[pkg]; renamed {
					pkg = real
				}
				names = append(names, pkg+"."+s.Sel.Name)
			}
		}
		return true
	})
	return names
}
