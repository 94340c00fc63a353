package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fork starts the main process in a process group of its own and returns when
// it has executed the program, so a signal for the group finds it. The command
// inherits this thread's signal mask, which CatchSignals has emptied; Go gives
// it back the NOFILE limit that foster was started with.
func (k *keeper) fork() (int, error) {
	if len(k.spec.Args) == 0 || k.spec.Args[0] == "" {
		return 0, &StartError{CodeFailed, errNoName, ""}
	}
	env := k.spec.Env
	if env == nil {
		env = syscall.Environ()
	}
	if k.spec.Dir != "" {
		if err := unix.Chdir(k.spec.Dir); err != nil {
			return 0, &StartError{CodeFailed, fmt.Errorf("cannot enter working directory %q: %w", k.spec.Dir, err), ""}
		}
	}
	path, err := lookPath(k.spec.Args[0], env)
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
	pid, err := syscall.ForkExec(path, k.spec.Args, attr)
	if err != nil {
		return 0, k.spec.startError(path, err)
	}
	return pid, nil
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
	env := s.Env
	if env == nil {
		env = syscall.Environ()
	}
	path, err := lookPath(s.Args[0], env)
	if err != nil {
		return "", err
	}
	if s.Dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	if err := executable(path); err != nil {
		return "", s.startError(path, err)
	}
	return path, nil
}

// lookPath finds the program in the PATH of the command's own environment, unless
// the name has a slash; without a PATH nothing is found. Something that is there and cannot
// be executed is remembered, the search goes on.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var found error
	for _, dir := range filepath.SplitList(getenv(env, "PATH")) {
		path := filepath.Join(dir, name)
		if dir == "" {
			path = "./" + name
		}
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && found == nil {
			found = &StartError{CodeCannotExec, fmt.Errorf("cannot execute %q: %w", path, err), ""}
		}
	}
	if found == nil {
		found = &StartError{
			CodeNotFound, fmt.Errorf("cannot find %q in PATH: %w", name, unix.ENOENT),
			"PATH is " + quoteOrUnset(getenv(env, "PATH")),
		}
	}
	return "", found
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
	case errors.Is(err, unix.EPERM) && s.Credential != nil:
		e.ExitCode, e.Err = CodeFailed, fmt.Errorf("cannot run as uid %d, gid %d: %w", s.Credential.UID, s.Credential.GID, err)
		e.Hint = "changing the user takes CAP_SETUID and CAP_SETGID"
	case errors.Is(err, unix.ENOENT) && statErr == nil:
		e.ExitCode, e.Hint = CodeNotFound, "the file is there; what is missing is its interpreter (#! line) or dynamic loader"
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		e.ExitCode = CodeNotFound
	case errors.Is(err, unix.ENOEXEC):
		e.Hint = "not a program of this machine's kind; a script needs a first line such as #!/bin/sh"
	}
	return e
}
