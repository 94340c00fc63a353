// Package foster_test holds the README to its word. A fenced block of it is one of these, and nothing else:
//
//	console     commands after "$ ", each followed by what it prints; run with a foster built from this tree
//	dockerfile  built with Docker; the console block that follows runs the image
//	go          a program that prints what its "// Output:" line says
//	json        a line of the report: its keys, in their order
//	sh          the one command that passes the tests; .ci/run takes it from here
package foster_test

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is one fenced block.
type block struct {
	lang string
	line int // of the opening fence
	text string
}

// readme returns the fenced blocks of README.md that are in one of the languages.
func readme(t *testing.T, langs ...string) []block {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []block
	var open *block
	for i, line := range strings.Split(string(data), "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{lang: lang, line: i + 1}
		case fence:
			if len(langs) == 0 || strings.Contains(" "+strings.Join(langs, " ")+" ", " "+open.lang+" ") {
				found = append(found, *open)
			}
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("README.md:%d: block is not closed", open.line)
	}
	if len(found) == 0 {
		t.Fatalf("README.md: no block in %v", langs)
	}
	return found
}

// skip skips the test for want of something on the machine. In CI nothing may be wanting.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("in CI this must not be skipped: "+format, args...)
	}
	t.Skipf(format, args...)
}

// run ends the test if the command fails, and returns its stdout. No command here may take two minutes.
func run(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	out, err := try(stdin, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(stdin []byte, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out), nil
}

// foster builds the binary as the Dockerfile does, in a directory of its own, and returns its path.
func foster(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foster")
	t.Setenv("CGO_ENABLED", "0")
	run(t, nil, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/foster")
	return path
}

// session runs the block's commands in one shell, with the names replaced, and returns what a terminal would have shown.
//
// The shell is PID 1 of a PID namespace: `ps` and `pkill` see the block's own processes alone, and whatever the block leaves
// goes when the shell does.
func session(t *testing.T, b block, binary string, names *strings.Replacer) string {
	t.Helper()
	unshare := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	if _, err := try(nil, "unshare", append(unshare, "true")...); err != nil {
		skip(t, "no PID namespace to be had: %v", err)
	}
	script := "exec 2>&1\n"
	for line := range strings.Lines(b.text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			script += "printf '%s\\n' '" + strings.ReplaceAll(strings.TrimSpace(line), "'", `'\''`) + "'\n"
			script += names.Replace(command)
		}
	}
	script += "exit 0\n" // the last command may well have failed, as it was meant to
	path := filepath.Join(t.TempDir(), "session.sh")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(binary)+":"+os.Getenv("PATH"))
	t.Setenv("LC_ALL", "C")
	return run(t, nil, "unshare", append(unshare, "sh", path)...)
}

func check(t *testing.T, b block, got string) {
	t.Helper()
	if got != b.text {
		t.Errorf("README.md:%d shows:\n%s\nbut it is:\n%s", b.line, b.text, got)
	}
}

func TestEveryBlockIsOfAKindThatIsTested(t *testing.T) {
	for _, b := range readme(t) {
		switch b.lang {
		case "console", "dockerfile", "go", "json", "sh":
		default:
			t.Errorf("README.md:%d: a block in %q is held to its word by no test", b.line, b.lang)
		}
	}
}

// .ci/run runs what it finds in the only sh block.
func TestOneCommandPassesTheTests(t *testing.T) {
	blocks := readme(t, "sh")
	if len(blocks) != 1 || blocks[0].text != "go test ./...\n" {
		t.Errorf("README.md: the sh blocks must be the test command alone, but are %+v", blocks)
	}
}

func TestConsoleShowsWhatCommandsPrint(t *testing.T) {
	binary := foster(t)
	for _, b := range readme(t, "console") {
		if strings.Contains(b.text, "$ docker ") {
			continue // TestDockerfileMakesAnImageThatRuns
		}
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			check(t, b, session(t, b, binary, strings.NewReplacer()))
		})
	}
}

func TestDockerfileMakesAnImageThatRuns(t *testing.T) {
	if _, err := try(nil, "docker", "version"); err != nil {
		skip(t, "no Docker engine: %v", err)
	}
	dockerfile := readme(t, "dockerfile")[0]
	if n := strings.Count(dockerfile.text, "\n"); n > 10 {
		t.Errorf("README.md:%d: %d lines; ten are promised", dockerfile.line, n)
	}
	binary := foster(t)

	// The README's names stand for images that a reader has or can pull. Here they are made on the spot, under names that can
	// be nobody else's. An image goes after those that are built on it.
	name := func(of string) string { return fmt.Sprintf("foster-readme-test-%d-%s", os.Getpid(), of) }
	t.Cleanup(func() {
		for _, image := range []string{name("example"), name("foster"), name("base")} {
			left, _ := try(nil, "docker", "ps", "--all", "--quiet", "--filter", "ancestor="+image)
			for _, container := range strings.Fields(left) {
				_, _ = try(nil, "docker", "rm", "--force", "--volumes", container)
			}
			_, _ = try(nil, "docker", "rmi", "--force", image)
		}
	})
	replace := func(text, old, new string) string {
		if strings.Count(text, old) != 1 {
			t.Fatalf("want %q once in\n%s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	build := func(image, dockerfile string, files ...string) {
		dir := t.TempDir()
		for _, file := range files {
			if err := os.Link(file, filepath.Join(dir, filepath.Base(file))); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "docker", "build", "--quiet", "--force-rm", "--tag", image, dir)
	}

	// Of the project's Dockerfile the last stage; its first one needs an image with Go, and a network.
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(data), "\nFROM scratch\n")
	build(name("foster"), "FROM scratch\n"+replace(last, "--from=build /foster", "foster"), binary)

	run(t, busyboxRoot(t), "docker", "import", "-", name("base"))
	text := replace(dockerfile.text, "FROM debian:stable-slim", "FROM "+name("base"))
	build(name("example"), replace(text, "--from=foster ", "--from="+name("foster")+" "))

	for _, b := range readme(t, "console") {
		if strings.Contains(b.text, "$ docker ") {
			check(t, b, session(t, b, binary, strings.NewReplacer("foster-example", name("example"))))
		}
	}
}

// busyboxRoot is a root file system, as a tar archive: Debian's static busybox under all of its names.
func busyboxRoot(t *testing.T) []byte {
	t.Helper()
	const path = "/bin/busybox"
	file, err := elf.Open(path)
	if err != nil {
		skip(t, "no busybox (Debian: busybox-static): %v", err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		skip(t, "busybox needs %v (Debian: busybox-static does not): %v", libraries, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var root bytes.Buffer
	archive := tar.NewWriter(&root)
	add := func(header tar.Header, content []byte) {
		header.Mode, header.Size = 0o755, int64(len(content))
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg}, content)
	for applet := range strings.FieldsSeq(run(t, nil, path, "--list")) {
		if applet != "busybox" {
			add(tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return root.Bytes()
}

func TestGoProgramPrintsItsOutput(t *testing.T) {
	for _, b := range readme(t, "go") {
		_, output, found := strings.Cut(b.text, "// Output: ")
		want, _, _ := strings.Cut(output, "\n")
		if !found {
			t.Errorf("README.md:%d: no Output comment", b.line)
			continue
		}
		dir := t.TempDir()
		source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		if err := os.WriteFile(source, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "go", "vet", source)
		run(t, nil, "go", "build", "-o", program, source)
		if got := run(t, nil, program); got != want+"\n" {
			t.Errorf("README.md:%d: want %q, got %q", b.line, want, got)
		}
		if changed := run(t, nil, "gofmt", "-l", source); changed != "" {
			t.Errorf("README.md:%d: not as gofmt has it", b.line)
		}
	}
}

func TestReportHasTheKeysThatAreShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	run(t, nil, foster(t), "--report", path, "--", "true")
	report, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range readme(t, "json") {
		got, want := keys(t, string(report)), keys(t, b.text)
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("README.md:%d shows the keys\n%q\nbut they are\n%q\n%s", b.line, want, got, report)
		}
	}
}

// keys returns the keys of a JSON object of plain values, in their order, each with its value's type.
func keys(t *testing.T, line string) []string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(line), &object); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	var found []string
	for _, match := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(line, -1) {
		found = append(found, fmt.Sprintf("%s:%T", match[1], object[match[1]]))
	}
	return found
}

func TestLinksLeadToFiles(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(data), -1) {
		if _, err := os.Stat(match[1]); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
}
