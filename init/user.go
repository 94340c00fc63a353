package supervisor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/sys/user"

	"github.com/fosterinit/foster/exec"
)

const (
	passwdPath = "/etc/passwd"
	groupPath  = "/etc/group"
)

// resolveUser looks the user up as Docker does: a number need not be in
// /etc/passwd, and a group that is named stands in place of the user's groups.
func (c *command) resolveUser(problems *Problems) {
	spec := c.Command.User
	if spec == "" {
		return
	}
	if strings.HasPrefix(spec, ":") {
		problems.add(Problem{Source: c.source("USER"), Text: fmt.Sprintf("%q names no user", spec), Hint: "write user:group"})
		return
	}
	u, err := user.GetExecUserPath(spec, &user.ExecUser{Home: "/"}, passwdPath, groupPath)
	if err != nil {
		problems.add(Problem{
			Source: c.source("USER"), Text: fmt.Sprintf("cannot use %q: %v", spec, err),
			Hint: "name a user of " + passwdPath + ", or a uid; then :group of " + groupPath + ", or :gid",
		})
		return
	}
	c.Spec.Credential = &exec.Credential{UID: uint32(u.Uid), GID: uint32(u.Gid)}
	for _, gid := range u.Sgids {
		c.Spec.Credential.Groups = append(c.Spec.Credential.Groups, uint32(gid))
	}
	name := userName(spec, u.Uid)
	c.Spec.Env = setenv(c.Spec.Env, "HOME="+u.Home, "USER="+name, "LOGNAME="+name)
}

// userName returns the name of the uid in /etc/passwd, else what was given.
func userName(spec string, uid int) string {
	found, err := user.ParsePasswdFileFilter(passwdPath, func(u user.User) bool { return u.Uid == uid })
	if err == nil && len(found) > 0 {
		return found[0].Name
	}
	name, _, _ := strings.Cut(spec, ":")
	if name == "" {
		name = strconv.Itoa(uid)
	}
	return name
}

// setenv returns env with the entries in place of those of the same name.
func setenv(env []string, entries ...string) []string {
	var out []string
	for _, old := range env {
		keep := true
		for _, e := range entries {
			name, _, _ := strings.Cut(e, "=")
			keep = keep && !strings.HasPrefix(old, name+"=")
		}
		if keep {
			out = append(out, old)
		}
	}
	return append(out, entries...)
}
