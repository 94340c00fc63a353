package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/proc"
)

// fork starts the main process in a process group of its own and returns when
// it has executed the program, so a signal for the group finds it. The command
// inherits this thread's signal mask, which CatchSignals has emptied; Go gives
// it back the NOFILE limit that foster was started with.
func (k *keeper) fork() (int, error) {
	if len(k.spec.Args) == 0 || k.spec.Args[0] == "" {
		return 0, &StartError{CodeFailed, errNoName, ""}
	}
	env := k.spec.environ()
	if k.spec.Dir != "" {
		if err := unix.Chdir(k.spec.Dir); err != nil {
			return 0, &StartError{CodeFailed, fmt.Errorf("cannot enter working directory %q: %w", k.spec.Dir, err), ""}
		}
	}
	paths, err := lookPath(k.spec.Args[0], env, "")
	if err != nil {
		return 0, err
	}
	if k.spec.Umask != nil {
		defer unix.Umask(unix.Umask(*k.spec.Umask))
	}
	attr := &syscall.ProcAttr{Env: env, Files: k.opt.files(), Sys: &syscall.SysProcAttr{
		Setpgid: true, Foreground: k.tty != nil && k.tty.wanted(), Ctty: ttyFD, Credential: k.spec.Credential.sys(),
		// A backstop: if this process is killed there is nobody to keep the promise.
		Pdeathsig: syscall.SIGKILL,
	}}
	pid := 0
	err = k.spec.inheriting(func() error {
		var first *StartError
		for _, path := range paths {
			p, err := syscall.ForkExec(path, k.spec.Args, attr)
			if err == nil {
				pid = p
				return nil
			}
			if first == nil {
				first = k.spec.startError(path, err)
			}
			if !errors.Is(err, unix.EACCES) {
				break
			}
		}
		return first
	})
	return pid, err
}

var errNoName = errors.New("cannot start a command without a name")

// sys returns what ForkExec is to set, nil if the process is that already: an
// unprivileged one may not even set the ids that it has.
func (c *Credential) sys() *syscall.Credential {
	if c == nil {
		return nil
	}
	groups, err := unix.Getgroups()
	same := err == nil && len(groups) == len(c.Groups) &&
		unix.Getuid() == int(c.UID) && unix.Geteuid() == int(c.UID) && unix.Getgid() == int(c.GID) && unix.Getegid() == int(c.GID)
	for i := 0; same && i < len(groups); i++ {
		same = groups[i] == int(c.Groups[i])
	}
	if same {
		return nil
	}
	return &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
}

// Lookup returns the program that would be executed, or a *StartError. It starts
// nothing, and what it finds may have changed by the time something is.
func (s *Spec) Lookup() (string, error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return "", &StartError{CodeFailed, errNoName, ""}
	}
	paths, err := lookPath(s.Args[0], s.environ(), s.Dir)
	if err != nil {
		return "", err
	}
	path := in(s.Dir, paths[0])
	if err := executable(path); err != nil {
		return "", s.startError(path, err)
	}
	return path, nil
}

// lookPath finds the program in the PATH of the command's own environment, unless
// the name has a slash; without a PATH nothing is found. Something that is there and cannot
// be executed is remembered, the search goes on. What is relative is so to dir.
// There may be several: the user that the command runs as may not be allowed to
// execute what this process is.
func lookPath(name string, env []string, dir string) (paths []string, err error) {
	if strings.Contains(name, "/") {
		return []string{name}, nil
	}
	var found error
	for _, entry := range filepath.SplitList(getenv(env, "PATH")) {
		path := filepath.Join(entry, name)
		if entry == "" {
			path = "./" + name
		}
		err := executable(in(dir, path))
		if err == nil {
			paths = append(paths, path)
		} else if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && found == nil {
			found = &StartError{CodeCannotExec, fmt.Errorf("cannot execute %q: %w", path, err), ""}
		}
	}
	if len(paths) > 0 {
		return paths, nil
	}
	if found == nil {
		found = &StartError{CodeNotFound, fmt.Errorf("cannot find %q in PATH: %w", name, unix.ENOENT), notFoundHint(name, env)}
	}
	return nil, found
}

// notFoundHint guesses what was meant.
func notFoundHint(name string, env []string) string {
	switch {
	case strings.HasPrefix(name, "-"):
		return "options come before --, which an image's ENTRYPOINT has: set variables in their place"
	case strings.ContainsAny(name, " \t\n"):
		return "that is one word: give the arguments as words of their own, or a shell to split it: sh -c '...'"
	}
	return "PATH is " + quoteOrUnset(getenv(env, "PATH"))
}

// in returns what a path means in the directory dir, if there is one.
func in(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func interpreterHint(path string) string {
	text, _ := proc.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	switch {
	case strings.HasPrefix(line, "#!") && strings.HasSuffix(line, "\r"):
		return "its first line ends with a carriage return, which is part of the interpreter's name then: save it with Unix line ends"
	case strings.HasPrefix(line, "#!"):
		return fmt.Sprintf("the file is there; what is missing is its interpreter: %q", line)
	}
	return "the file is there; what is missing is its dynamic loader"
}

func quoteOrUnset(path string) string {
	if path == "" {
		return "empty or not set"
	}
	return path
}

func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

// getenv returns the last value of name, as programs that build an environment
// by appending expect.
func getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// startError turns what fork and exec returned, which is one number for both,
// into an exit code and a sentence.
func (s *Spec) startError(path string, err error) *StartError {
	e := &StartError{CodeCannotExec, fmt.Errorf("cannot execute %q: %w", path, err), ""}
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && info.IsDir():
		e.Err = fmt.Errorf("cannot execute %q: %w", path, unix.EISDIR)
	case errors.Is(err, unix.EAGAIN):
		e.ExitCode, e.Err = CodeFailed, fmt.Errorf("cannot start a process for %q: %w", path, err)
		e.Hint = "the limit on processes is reached: see pids.max of the container or ulimit -u"
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		e.ExitCode, e.Err = CodeFailed, fmt.Errorf("cannot start a process for %q: %w", path, err)
	case errors.Is(err, unix.EBADF):
		e.ExitCode, e.Err = CodeFailed, fmt.Errorf("cannot hand on the descriptors of %q: %w", path, err)
		e.Hint = "their numbers have to be below the limit on open files: see ulimit -n"
	case errors.Is(err, unix.EINVAL) && s.Credential != nil:
		e.ExitCode, e.Err = CodeFailed, fmt.Errorf("cannot run as uid %d, gid %d: %w", s.Credential.UID, s.Credential.GID, err)
		e.Hint = "this user namespace has no such ids: see /proc/self/uid_map and gid_map"
	case errors.Is(err, unix.EPERM) && s.Credential != nil:
		e.ExitCode, e.Err = CodeFailed, fmt.Errorf("cannot run as uid %d, gid %d: %w", s.Credential.UID, s.Credential.GID, err)
		e.Hint = "changing the user takes CAP_SETUID and CAP_SETGID"
	case errors.Is(err, unix.ENOENT) && statErr == nil:
		e.ExitCode, e.Hint = CodeNotFound, interpreterHint(path)
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		e.ExitCode = CodeNotFound
	case errors.Is(err, unix.ENOEXEC):
		e.Hint = "not a program of this machine's kind; a script needs a first line such as #!/bin/sh"
	}
	return e
}
