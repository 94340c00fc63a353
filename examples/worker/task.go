package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

const (
	maxTask    = 1 << 20
	maxTimeout = 24 * time.Hour
	maxRetries = 100
)

// task is what one worker runs. It is read from a file or standard input: a
// secret in it never stands in an argument, which everybody may read.
type task struct {
	ID          string            `json:"id"`
	Command     []string          `json:"command"`
	Env         map[string]string `json:"env"`
	TimeoutSecs float64           `json:"timeout_secs"` // of each attempt; a task without a deadline is refused
	Retries     int               `json:"retries"`      // attempts after the first
	Image       string            `json:"image"`        // empty: on the host
}

var (
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`) // what a file and a container may be called
	namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func readTask(r io.Reader) (*task, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxTask+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read task: %v", err)
	}
	if len(text) > maxTask {
		return nil, fmt.Errorf("cannot read task: more than %d bytes", maxTask)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	t := new(task)
	if err := decoder.Decode(t); err != nil {
		return nil, fmt.Errorf("cannot read task: %v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("cannot read task: something follows the object")
	}
	return t, t.validate()
}

// validate reports all that is wrong at once. It names variables, never values.
func (t *task) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("cannot run task: "+format, args...)) }
	if !idPattern.MatchString(t.ID) {
		refuse("id %q is not of letters, digits, _ . -", t.ID)
	}
	if len(t.Command) == 0 || t.Command[0] == "" {
		refuse("command is empty")
	}
	if strings.Contains(strings.Join(t.Command, ""), "\x00") {
		refuse("a NUL byte in command")
	}
	if t.TimeoutSecs <= 0 || t.TimeoutSecs > maxTimeout.Seconds() {
		refuse("timeout_secs %v is not above 0 and at most %v", t.TimeoutSecs, maxTimeout.Seconds())
	}
	if t.Retries < 0 || t.Retries > maxRetries {
		refuse("retries %d is not 0 to %d", t.Retries, maxRetries)
	}
	if strings.HasPrefix(t.Image, "-") {
		refuse("image %q would be an option", t.Image)
	}
	for name, value := range t.Env {
		if reason := t.refuseVariable(name, value); reason != "" {
			refuse("variable %q %s", name, reason)
		}
	}
	return errors.Join(errs...)
}

func (t *task) refuseVariable(name, value string) string {
	switch {
	case !namePattern.MatchString(name):
		return "is not a name"
	case strings.Contains(value, "\x00"):
		return "has a NUL byte"
	case t.Image != "" && strings.ContainsAny(value, "\r\n"):
		return "has more than one line, which docker's env-file cannot say"
	}
	return ""
}

func (t *task) timeout() time.Duration {
	return time.Duration(t.TimeoutSecs * float64(time.Second))
}
