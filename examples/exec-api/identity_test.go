package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

// testAccounts has a user with supplementary groups, whatever the machine has.
func testAccounts(t *testing.T) accounts {
	t.Helper()
	dir := t.TempDir()
	a := accounts{filepath.Join(dir, "passwd"), filepath.Join(dir, "group")}
	for path, text := range map[string]string{
		a.passwd: "root:x:0:0:root:/root:/bin/sh\nada:x:7071:7072:Ada:/home/ada:/bin/sh\n",
		a.group:  "root:x:0:\nada:x:7072:\nstaff:x:7073:bob,ada\nother:x:7074:bob\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// whoami prints ids from the kernel's view, so that no passwd of the machine
// has a say, and the variables.
const whoami = `awk '/^(Uid|Gid):/ {print $1 $2 "," $3 "," $4 "," $5} /^Groups:/ {$1=""; print "Groups:" $0}' /proc/self/status; ` +
	`echo "$HOME $USER $LOGNAME"`

func TestAsUserIsThatUserWithGroupsAndVariables(t *testing.T) {
	nstest.NeedRoot(t)
	a := newAPI()
	a.accounts = testAccounts(t)
	for _, user := range []string{"ada", "7071"} {
		r := answered(t, a, request{Command: "sh", Args: []string{"-c", whoami}, AsUser: user})
		want := "Uid:7071,7071,7071,7071\nGid:7072,7072,7072,7072\nGroups: 7072 7073\n/home/ada ada ada\n"
		if got := decode(t, r.Stdout); got != want || r.ExitCode != 0 {
			t.Errorf("as_user %q: exit code %d, %q %q, want %q", user, r.ExitCode, got, decode(t, r.Stderr), want)
		}
	}
}

func TestAUidWithoutAnAccountIsNotInRootsGroup(t *testing.T) {
	nstest.NeedRoot(t)
	a := newAPI()
	a.accounts = testAccounts(t)
	r := answered(t, a, request{Command: "sh", Args: []string{"-c", whoami}, AsUser: "7099"})
	want := "Uid:7099,7099,7099,7099\nGid:7099,7099,7099,7099\nGroups: 7099\n/ 7099 7099\n"
	if got := decode(t, r.Stdout); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAsRootIsRoot(t *testing.T) {
	nstest.NeedRoot(t)
	a := newAPI()
	a.accounts = testAccounts(t)
	t.Setenv("HOME", "/nowhere")
	r := answered(t, a, request{Command: "sh", Args: []string{"-c", whoami}, AsRoot: true})
	want := "Uid:0,0,0,0\nGid:0,0,0,0\nGroups: 0\n/root root root\n"
	if got := decode(t, r.Stdout); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheRequestsOwnVariablesWin(t *testing.T) {
	who := identity{variables: map[string]string{"HOME": "/home/ada", "USER": "ada"}}
	t.Setenv("HOME", "/nowhere")
	list := environ(who, environment{"USER": "eve"})
	for name, want := range map[string]string{"HOME": "/home/ada", "USER": "eve"} {
		count := 0
		for _, pair := range list {
			if strings.HasPrefix(pair, name+"=") {
				count++
				if pair != name+"="+want {
					t.Errorf("got %s, want %s", pair, want)
				}
			}
		}
		if count != 1 {
			t.Errorf("%s is there %d times", name, count)
		}
	}
}

// A tree of another user's processes is as gone as one's own.
func TestATreeOfAnotherUsersIsGoneToo(t *testing.T) {
	nstest.NeedRoot(t)
	a := newAPI()
	a.accounts = testAccounts(t)
	nstest.UntilProven(t, func(seconds float64) bool {
		mark := newMark(t)
		script := fmt.Sprintf("setsid sleep %s & echo so far; wait", mark)
		req := request{Command: "sh", Args: []string{"-c", script}, AsUser: "ada", Timeout: seconds}
		return checkTimedOut(t, a, req, mark) == "so far\n"
	})
}
