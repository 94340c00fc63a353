package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// The bystander says so of every signal that it gets, and the namespace's init would not survive a SIGTERM.
func TestX03_ABystanderNeverGetsASignal(t *testing.T) {
	t.Parallel()
	w := nstest.Subreaper()
	w.Program = []string{"/bin/sh", "-c", `
		foster=$1 helper=$2 said=$3
		$helper bystander >$said &
		until grep -q ready $said; do :; done
		$foster -t 3 -g 100ms -- $helper comet
		$foster -t 300ms -- sh -c 'trap "" TERM; setsid sleep 7071 & sleep 9'
		$foster -- sh -c 'sleep 7071 & exit 7'
		$foster -t 3 -g 0 -- $helper storm 50
		kill -0 $! && echo alive && cat $said; kill -KILL $!`, "sh"}
	said := filepath.Join(t.TempDir(), "said")
	o := limited(t, w, 200).Run(t, w.Foster(t), w.Helper(t), said)
	if o.Stdout != "ready\nready\nalive\nready\n" { // the comet's, the storm's, the bystander's
		t.Errorf("the bystander got a signal or is gone:\n%s", o)
	}
}

func TestX05_TheParentsSignalStateIsNotTheCommands(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		for _, n := range []unix.Signal{unix.SIGTERM, unix.SIGCHLD, unix.SIGPIPE} {
			w.Setup.Block, w.Setup.Ignore = []int{int(n)}, nil
			t.Run("blocked "+n.String(), func(t *testing.T) { x05(t, w) })
			w.Setup.Block, w.Setup.Ignore = nil, []int{int(n)}
			t.Run("ignored "+n.String(), func(t *testing.T) { x05(t, w) })
		}
	})
}

// grep shows what it was given; a shell would have changed it.
func x05(t *testing.T, w nstest.World) {
	o := w.Run(t, "--", "grep", "Sig[BI]", "/proc/self/status").Exits(0).Clean()
	for line := range strings.Lines(o.Stdout) {
		if name, mask, _ := strings.Cut(strings.TrimSpace(line), ":\t"); strings.Trim(mask, "0") != "" {
			t.Errorf("%s is %s", name, mask)
		}
	}
	w.Run(t, "--", "sh", "-c", "exit 7").Exits(7)
	w.Run(t, "-t", "300ms", "-g", "0", "--", "sh", "-c", "sleep 7071 & sleep 9").Exits(124).Before(soon).Clean()
	r := w.Start(t, "--", "sh", "-c", "echo ready; exec sleep 7071").Expect("ready")
	r.Signal(unix.SIGTERM).Wait().Exits(143).Clean()
}

func TestX05_WhatNohupIgnoresStaysIgnored(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.Ignore = []int{int(unix.SIGHUP), int(unix.SIGINT)}
		w.Run(t, "--", "grep", "Sig[BI]", "/proc/self/status").Exits(0).
			Prints("SigBlk:\t0000000000000000").Prints("SigIgn:\t0000000000000003")
	})
}

func TestX06_TheCommandSeesTheFileLimitFosterWasGiven(t *testing.T) {
	in(t, namespaces(), func(t *testing.T, w nstest.World) {
		w.Setup.NoFile = 1024
		w.Run(t, "--", "sh", "-c", "ulimit -Sn").Exits(0).Prints("1024\n")
	})
	in(t, containers(), func(t *testing.T, w nstest.World) {
		w.Docker = []string{"--ulimit", "nofile=1024:4096"}
		w.Run(t, "--", "sh", "-c", "ulimit -Sn; ulimit -Hn").Exits(0).Prints("1024\n4096\n")
	})
}

func TestX07_TheEnvironmentArrivesUnchanged(t *testing.T) { in(t, everywhere(), x07) }

func x07(t *testing.T, w nstest.World) {
	w.Env = []string{"FOO=100%d $x %(y)s", "FOSTER_TIMEOUT=20", "FOSTERED=kept"}
	o := w.Run(t, "--", "env").Exits(0).Prints("FOO=100%d $x %(y)s\n").Prints("FOSTERED=kept\n")
	if strings.Contains(o.Stdout, "FOSTER_") {
		t.Errorf("the command sees foster's own:\n%s", o.Stdout)
	}
}

func TestX08_EverythingWrongIsSaidAtOnceAndNothingStarted(t *testing.T) {
	in(t, everywhere(), func(t *testing.T, w nstest.World) {
		w.Env = []string{"FOSTER_TIMOUT=5", "FOSTER_UMASK=9", "FOSTER_TIMEOUT=", "FOSTER_GRACE_PERIOD=abc"}
		o := w.Run(t, "--", "echo", "started").Exits(125)
		if o.Stdout != "" {
			t.Error("the command was started")
		}
		for _, message := range []string{
			`FOSTER_TIMOUT\b.*FOSTER_TIMEOUT`, // what was meant
			`FOSTER_UMASK\b.*9.*octal`,
			`FOSTER_TIMEOUT\b.*(empty|no value).*(remove|unset|0|such as)`,
			`FOSTER_GRACE_PERIOD\b.*abc.*[0-9]+(s|m|ms)\b`, // how a duration is written
		} {
			// A message may go on in its next line, with the hint.
			if !regexp.MustCompile("(?s)" + message).MatchString(o.Stderr) {
				t.Errorf("nothing that says %s\n%s", message, o)
			}
		}
	})
}

func TestX13_FosterBelowFosterBelowFoster(t *testing.T) { in(t, everywhere(), x13) }

func x13(t *testing.T, w nstest.World) {
	foster := w.Foster(t)
	deep := func(options ...string) []string {
		return append(append([]string{"-t", "30", "--", foster, "-t", "20", "--", foster}, options...),
			"--", "sh", "-c", "setsid sleep 7071 & echo ready; sleep 9; exit 7")
	}
	o := w.Run(t, deep("-t", "300ms", "-g", "0")...)
	o.Exits(124).After(deadline).Before(soon).Clean().Silent()
	r := w.Start(t, deep()...).Expect("ready")
	r.Signal(unix.SIGTERM).Wait().Exits(143).Clean()
}
