package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/user"

	"github.com/fosterinit/foster/exec"
)

// accounts are the files in which users and groups are looked up.
type accounts struct{ passwd, group string }

// identity is who a command runs as; the zero value is the server itself.
type identity struct {
	credential *exec.Credential
	variables  map[string]string
}

func (a accounts) identify(req *request) (identity, error) {
	switch {
	case req.AsRoot:
		return a.lookup("0")
	case req.AsUser != "":
		return a.lookup(req.AsUser)
	}
	return identity{}, nil
}

// lookup makes a user complete. A uid alone would keep the server's groups, and
// with them what those may read; and a HOME that is still the server's makes
// half the programs there are fail in odd ways.
func (a accounts) lookup(spec string) (identity, error) {
	if strings.Contains(spec, ":") {
		return identity{}, fmt.Errorf("cannot run as user %q: give a name or a uid, the groups are looked up", spec)
	}
	// A uid that no account has gets the group of its own number: the usual 0
	// would be root's group, which nobody asked for.
	fallback := &user.ExecUser{Home: "/"}
	if uid, err := strconv.Atoi(spec); err == nil {
		fallback.Gid = uid
	}
	found, err := user.GetExecUserPath(spec, fallback, a.passwd, a.group)
	if err != nil {
		return identity{}, fmt.Errorf("cannot run as user %q: %v", spec, err)
	}
	name := a.name(found.Uid, spec)
	return identity{
		credential: &exec.Credential{UID: uint32(found.Uid), GID: uint32(found.Gid), Groups: groups(found)},
		variables:  map[string]string{"HOME": found.Home, "USER": name, "LOGNAME": name},
	}, nil
}

// groups is never nil and holds the primary group too, as initgroups(3) has it:
// a file may be closed to a group's members by its mode, and membership must
// not depend on which of the two lists is asked.
func groups(u *user.ExecUser) []uint32 {
	all := []uint32{uint32(u.Gid)}
	for _, gid := range u.Sgids {
		if !slices.Contains(all, uint32(gid)) {
			all = append(all, uint32(gid))
		}
	}
	return all
}

// name is the account's name, also when the request gave its uid.
func (a accounts) name(uid int, spec string) string {
	if _, err := strconv.Atoi(spec); err != nil {
		return spec
	}
	users, err := user.ParsePasswdFileFilter(a.passwd, func(u user.User) bool { return u.Uid == uid })
	if err != nil || len(users) == 0 {
		return spec
	}
	return users[0].Name
}

// environ is the server's environment, then the user's variables, then the
// request's own: the latter wins.
func environ(who identity, own environment) []string {
	merged := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		merged[name] = value
	}
	for _, more := range []map[string]string{who.variables, own} {
		for name, value := range more {
			merged[name] = value
		}
	}
	list := make([]string, 0, len(merged))
	for name, value := range merged {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
