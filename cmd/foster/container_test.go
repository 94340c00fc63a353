//go:build !race

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
	"github.com/fosterinit/foster/internal/nstest/wire"
)

// What only containers show. The image holds the binary as it is released, which the race detector has no eye on.

// A container costs a hundred times what a namespace does, so it gets one of each kind.
func TestE01_AContainersExitCodeIsTheCommands(t *testing.T) {
	for _, c := range []struct {
		role string
		n    int
		want int
	}{{"exit", 42, 42}, {"exit", 255, 255}, {"die", 9, 137}, {"die", 64, 192}} {
		t.Run(fmt.Sprint(c.role, c.n), func(t *testing.T) {
			t.Parallel()
			w := nstest.Docker()
			w.Run(t, "--", w.Helper(t), c.role, fmt.Sprint(c.n)).Exits(c.want)
		})
	}
}

func TestE03_AContainersCommandThatIsNotThere(t *testing.T) {
	t.Parallel()
	nstest.Docker().Run(t, "--", "/nope").Exits(127).Warns("/nope", "no such file")
}

// dockerConsole is a terminal with the docker client on it, and a container's terminal behind.
func dockerConsole(t *testing.T, argv ...string) *console {
	t.Helper()
	tag, name := nstest.Image(t), nstest.Name()
	master, slave := openPty(t)
	c := &console{t: t, master: master, output: make(chan string, 64), done: make(chan struct{}), engine: true}
	c.cmd = exec.Command("docker", append([]string{"run", "-it", "--rm", "--name", name, "--env", "PS1=" + prompt, tag}, argv...)...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: unix.SIGKILL}
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", name).Run() })
	return c.start(slave)
}

func TestS07_AContainersTerminalIsAsWithoutFoster(t *testing.T) {
	for _, foster := range []bool{false, true} {
		t.Run(fmt.Sprintf("foster %v", foster), func(t *testing.T) {
			t.Parallel()
			argv := []string{"/foster", "--", "sh"}
			if !foster {
				argv = argv[2:]
			}
			c := dockerConsole(t, argv...)
			c.expect(prompt).enter("echo $((6*7))\n").expects("42\r\n", prompt)
			// The shell edits lines, so it changes the terminal's settings around each: the output says when it has.
			c.enter("echo on; cat\n").expect("\non\r\n").enter("one\n").expect("one\r\none\r\n")
			c.enter(ctrlC).expects("^C", prompt)
			c.enter("echo on; cat\n").expect("\non\r\n").enter("one\n").expect("one\r\none\r\n")
			c.enter(ctrlZ).expects("^Z", "Stopped", prompt)
			c.enter("fg\n").expect("fg\r\ncat\r\n").enter("two\n").expect("two\r\ntwo\r\n").enter(ctrlD).expect(prompt)
			c.resize(40, 100)
			c.enter("until busybox stty size | grep '40 100'; do :; done\n").expects("40 100\r\n", prompt)
			c.enter("exit 3\n").ends(3)
		})
	}
}

func TestS07_CtrlZInAContainerWithoutAShellFreezesNothing(t *testing.T) {
	t.Parallel()
	c := dockerConsole(t, "/foster", "--", "cat")
	c.enter("one\n").expect("one\r\none\r\n").enter(ctrlZ).expect("^Z")
	c.enter("two\n").expect("two\r\ntwo\r\n").enter(ctrlC).ends(128 + int(unix.SIGINT))
}

// What a keeper's death leaves is told from what docker exec leaves.
func TestT15_AStrayIsNotTakenForWhatADeadKeeperLeft(t *testing.T) {
	t.Parallel()
	w := nstest.Docker()
	w.Named = nstest.Name()
	bad := `setsid sleep 7071 & until [ -e /tmp/go ]; do sleep 0.05; done; kill -9 $PPID; sleep 7073`
	w = many(w, "good,bad", "BAD_COMMAND="+shell(bad), "BAD_RESTART_POLICY=OnFailure", "BAD_BACKOFF=1h", "GOOD_COMMAND="+shell("echo ready; exec sleep inf"))
	w.Docker = append(w.Docker, "--tmpfs", "/tmp")
	r := w.Start(t).Expect("ready")
	nstest.Engine(t, "exec", w.Named, "sh", "-c", "setsid sleep 7074 & sleep 0.1")
	r.Until("the stray", running("sleep 7074"))
	nstest.Engine(t, "exec", w.Named, "touch", "/tmp/go")
	r.ExpectError(`"name":"bad"`)
	r.Until("the bad one's end", func(all []wire.Process) bool { return !running("sleep 7071")(all) })
	r.Until("the stray and the good one", func(all []wire.Process) bool { return running("sleep 7074")(all) && running("sleep inf")(all) })
	r.Signal(unix.SIGTERM).Wait().Exits(143)
}

func TestX02_AHardenedContainerIsNoDifferent(t *testing.T) {
	w := nstest.Docker()
	w.Docker = strings.Fields(
		"--read-only --cap-drop ALL --security-opt no-new-privileges --user 1000 --network none")
	for name, row := range map[string]func(*testing.T, nstest.World){
		"T01": t01, "T03": t03, "T04": t04, "T05": t05, "T06": t06, "T09": t09, "T11": t11,
		"S03": s03, "S04": s04, "S09": s09, "X05": x05, "X07": x07, "X13": x13,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row(t, w)
		})
	}
}

func TestX03_UnderShareProcessNamespaceTheNeighbourIsLeftAlone(t *testing.T) {
	t.Parallel()
	neighbour := nstest.Docker()
	neighbour.Named = nstest.Name()
	neighbour.Program = []string{neighbour.Helper(t), "bystander"}
	r := neighbour.Start(t).Expect("ready")
	for _, args := range []string{"comet", "storm 50"} {
		w := nstest.Docker()
		w.NoInit, w.Docker = true, []string{"--pid", "container:" + neighbour.Named, "--pids-limit", "100"}
		o, _ := w.RunPast(t, deadline, append([]string{"-g", "0", "--", w.Helper(t)}, strings.Fields(args)...)...)
		o.Exits(124).Clean()
	}
	r.Until("only the neighbour", func(all []wire.Process) bool { return len(all) == 1 && all[0].State == "S" })
	if out := r.Output(); strings.Contains(out, "got") {
		t.Errorf("the neighbour %s", out)
	}
}

func TestX03_UnderDockersInitFosterIsASubreaper(t *testing.T) {
	t.Parallel()
	w := nstest.Docker()
	w.NoInit, w.Docker = true, []string{"--init"}
	t03(t, w)
}

func TestX04_WhatDockerExecLeavesIsReaped(t *testing.T) {
	t.Parallel()
	w := nstest.Docker()
	w.Named = nstest.Name()
	r := w.Start(t, "--", "sh", "-c", "echo ready; exec sleep inf").Expect("ready")
	var clients sync.WaitGroup
	for range 4 { // each is one client's worth of execs, and ends with the last
		clients.Go(func() {
			for range 25 {
				nstest.Engine(t, "exec", w.Named, "sh", "-c", "sleep 0.2 &")
			}
		})
	}
	clients.Wait()
	r.Until("none but foster and its command", func(all []wire.Process) bool { return len(all) == 2 })
	r.Signal(unix.SIGTERM).Wait().Exits(143).Clean()
}
