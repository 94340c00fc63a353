package supervisor

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fosterinit/foster/exec"
)

func TestAUserIsANameOrNumbers(t *testing.T) {
	for _, c := range []struct {
		user       string
		uid, gid   uint32
		home, name string
	}{
		{"root", 0, 0, "/root", "root"},
		{"0", 0, 0, "/root", "root"},
		{"root:1000", 0, 1000, "/root", "root"},
		{"nobody", 65534, 65534, "/nonexistent", "nobody"},
		{"nobody:root", 65534, 0, "/nonexistent", "nobody"},
		{"4711:4712", 4711, 4712, "/", "4711"},
	} {
		plan := load(t, []string{"--user", c.user, "true"}, []string{"HOME=/x", "A=1", "USER=x", "LOGNAME=x", "HOMER=simpson", "HOME=/y"})
		if got := plan.line.Spec.Credential; got == nil || got.UID != c.uid || got.GID != c.gid {
			t.Errorf("%s: got %+v", c.user, got)
		}
		want := []string{"A=1", "HOMER=simpson", "HOME=" + c.home, "USER=" + c.name, "LOGNAME=" + c.name}
		if !slices.Equal(plan.line.Spec.Env, want) {
			t.Errorf("%s: got %q, want %q", c.user, plan.line.Spec.Env, want)
		}
	}
	// A group that is named stands in place of the user's own groups.
	if got := load(t, []string{"--user", "nobody:4712", "true"}, nil).line.Spec.Credential; !reflect.DeepEqual(got, &exec.Credential{UID: 65534, GID: 4712}) {
		t.Errorf("got %+v", got)
	}
}

func TestWithoutAUserNothingOfItChanges(t *testing.T) {
	plan := load(t, []string{"true"}, []string{"HOME=/x"})
	if plan.line.Spec.Credential != nil || !slices.Equal(plan.line.Spec.Env, []string{"HOME=/x"}) {
		t.Errorf("got %+v", plan.line.Spec)
	}
}

func TestAnUnknownUserIsAProblem(t *testing.T) {
	for _, user := range []string{"no-such-user", "root:no-such-group", "-1", "99999999999", "1000:-1", ":", "a:b:c"} {
		p := one(t, []string{"--user", user, "true"}, nil)
		if p.Source != "--user" || !strings.Contains(p.Text, user) || p.Hint == "" {
			t.Errorf("%s: %v", user, p)
		}
	}
}
