package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxBody    = 1 << 20
	maxTimeout = 24 * time.Hour
)

// request is the body of POST /process/exec.
type request struct {
	Command string      `json:"command"` // a path, or a name to be found in PATH; never a shell line
	Args    []string    `json:"args"`
	Cwd     string      `json:"cwd"`         // empty: the server's own
	Env     environment `json:"env"`         // added to the server's own
	AsUser  string      `json:"as_user"`     // a name or a uid
	AsRoot  bool        `json:"as_root"`     // root, whoever the server is; fails where it may not
	Timeout float64     `json:"timeout_sec"` // 0: as long as the client stays
}

// environment is read from an object or, as Docker's API has it, from a list
// of NAME=value.
type environment map[string]string

func (e *environment) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) != nil {
		return json.Unmarshal(data, (*map[string]string)(e))
	}
	*e = environment{}
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("env entry %q is not NAME=value", pair)
		}
		(*e)[name] = value
	}
	return nil
}

// readRequest reads the body to its end, which is more than a refusal of what
// follows the object: net/http starts to watch for a client that goes away
// only when the whole body has been read.
func readRequest(w http.ResponseWriter, r *http.Request) (*request, error) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	req := new(request)
	if err := decoder.Decode(req); err != nil {
		return nil, fmt.Errorf("cannot read request: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		if err == nil || !errors.As(err, new(*http.MaxBytesError)) {
			err = errors.New("something follows the object")
		}
		return nil, fmt.Errorf("cannot read request: %w", err)
	}
	return req, req.validate()
}

// validate reports all that is wrong at once.
func (r *request) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Command == "" {
		refuse("cannot run: command is empty")
	}
	if r.AsRoot && r.AsUser != "" {
		refuse("cannot run as root and as user %q: give as_root or as_user, not both", r.AsUser)
	}
	if r.Timeout < 0 || r.Timeout > maxTimeout.Seconds() {
		refuse("cannot use timeout_sec %v: give 0 (none) to %v", r.Timeout, maxTimeout.Seconds())
	}
	for name := range r.Env {
		if name == "" || strings.Contains(name, "=") {
			refuse("cannot set variable %q: not a name", name)
		}
	}
	if r.hasNUL() {
		refuse("cannot run: a NUL byte in command, args, cwd or env")
	}
	return errors.Join(errs...)
}

// hasNUL is checked here because the kernel would cut a string there in silence.
func (r *request) hasNUL() bool {
	all := append([]string{r.Command, r.Cwd}, r.Args...)
	for name, value := range r.Env {
		all = append(all, name, value)
	}
	return strings.Contains(strings.Join(all, ""), "\x00")
}

func (r *request) timeout() time.Duration {
	return time.Duration(r.Timeout * float64(time.Second))
}
