package supervisor

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDurationsAreGosOrABareNumberOfSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second, "90s": 90 * time.Second, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond,
		"1.5": 1500 * time.Millisecond, "1h": time.Hour, "0s": 0, "30": 30 * time.Second,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q: got %v, %v", text, d, err)
		}
	}
	refuses(t, func() text { return new(Duration) }, "", "x", "s", "-1", "-1s", "1d", "10 s", "1e3", "0x10", "99999999999999", "NaN", "ten", "1h30", "5m3")
}

func TestSignalsHaveTheirNamesOrNumbers(t *testing.T) {
	for text, want := range map[string]unix.Signal{
		"TERM": unix.SIGTERM, "SIGTERM": unix.SIGTERM, "term": unix.SIGTERM, "15": unix.SIGTERM, "1": unix.SIGHUP, "64": 64,
		"RTMIN": 34, "RTMIN+3": 37, "SIGRTMIN+3": 37, "RTMAX": 64, "RTMAX-1": 63, "rtmin+30": 64, "USR1": unix.SIGUSR1,
	} {
		var s Signal
		if err := s.UnmarshalText([]byte(text)); err != nil || unix.Signal(s) != want {
			t.Errorf("%q: got %v, %v", text, s, err)
		}
	}
	refuses(t, func() text { return new(Signal) },
		"", "0", "65", "-1", "+15", "SIG", "TERMINATE", "SIGSIGTERM", "RTMIN-1", "RTMIN+31", "RTMAX+1", "RTMAX-31", "RTMIN3", "RTMIN+", "1.5", " TERM")
}

func TestEverySignalsNameMeansTheSignal(t *testing.T) {
	for sig := Signal(1); sig <= 64; sig++ {
		var back Signal
		if err := back.UnmarshalText([]byte("SIG" + sig.String())); err != nil || back != sig {
			t.Errorf("%d is %s, which is %d, %v", int(sig), sig, int(back), err)
		}
	}
	if got := Signal(unix.SIGTERM).String(); got != "TERM" {
		t.Errorf("got %s", got)
	}
}

func TestUmasksAreOctal(t *testing.T) {
	for text, want := range map[string]string{"0": "000", "22": "022", "022": "022", "0022": "022", "777": "777", "27": "027"} {
		var u Umask
		if err := u.UnmarshalText([]byte(text)); err != nil || u.String() != want || fmt.Sprintf("%03o", *u.Bits) != want {
			t.Errorf("%q: got %v, %v", text, u, err)
		}
	}
	refuses(t, func() text { return new(Umask) }, "", "9", "1000", "-22", "+22", "0o22", "u=rwx", "0x1f")
	if got := (Umask{}).String(); got != "" {
		t.Errorf("none is %q", got)
	}
}

func TestListsOfExitCodesAndDescriptors(t *testing.T) {
	var codes ExitCodes
	if err := codes.UnmarshalText([]byte("0, 143,255")); err != nil || codes.String() != "0,143,255" {
		t.Errorf("got %v, %v", codes, err)
	}
	if !codes.Has(0) || !codes.Has(143) || codes.Has(1) || ExitCodes(nil).Has(0) {
		t.Errorf("%v has what it should not, or not what it should", codes)
	}
	refuses(t, func() text { return new(ExitCodes) }, "", "256", "-1", "1,,2", "1,", "1;2", "x", "0-9")
	var fds FDs
	if err := fds.UnmarshalText([]byte("3,1023")); err != nil || fds.String() != "3,1023" {
		t.Errorf("got %v, %v", fds, err)
	}
	refuses(t, func() text { return new(FDs) }, "", "2", "0", "3,1", "1024", "-3", "3,,4", "fd:3", "99999999999")
}

func TestAReportGoesToAFileOrADescriptor(t *testing.T) {
	for text, want := range map[string]Report{
		"/run/report": {Path: "/run/report"}, "report": {Path: "report"}, "fd:1": {FD: 1}, "fd:1023": {FD: 1023}, "fd": {Path: "fd"},
	} {
		var r Report
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want || r.String() != text {
			t.Errorf("%q: got %+v, %v", text, r, err)
		}
	}
	// Paths that mean a descriptor are that: foster lets go of its own standard output.
	for text, want := range map[string]string{"/dev/stdout": "fd:1", "/dev/stderr": "fd:2", "/dev/fd/7": "fd:7"} {
		var r Report
		if err := r.UnmarshalText([]byte(text)); err != nil || r.String() != want {
			t.Errorf("%q: got %+v, %v", text, r, err)
		}
	}
	refuses(t, func() text { return new(Report) }, "fd:", "fd:0", "fd:-1", "fd:x", "fd:1024", "fd:3,4")
}

func TestALogFormatIsOneOfThree(t *testing.T) {
	for _, text := range []string{"text", "json", "auto"} {
		var f LogFormat
		if err := f.UnmarshalText([]byte(text)); err != nil || f.String() != text {
			t.Errorf("%q: got %q, %v", text, f, err)
		}
	}
	refuses(t, func() text { return new(LogFormat) }, "", "JSON", "xml")
}

// text is a type of configuration value.
type text interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

// refuses wants an error for each, which says what was given.
func refuses(t *testing.T, make func() text, texts ...string) {
	t.Helper()
	for _, given := range texts {
		v := make()
		if err := v.UnmarshalText([]byte(given)); err == nil {
			t.Errorf("%T takes %q as %v", v, given, v)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%q", given)) {
			t.Errorf("%T of %q: the error does not say so: %v", v, given, err)
		}
	}
}

func FuzzWhatAValueSaysOfItselfMeansTheSame(f *testing.F) {
	for _, given := range []string{
		"", "0", "90", "1m30s", "250ms", "-1s", "TERM", "SIGRTMIN+3", "RTMAX-1", "RTMIN++1", "022", "0,143", "3,4", "fd:3", "fd:0",
		"/run/report", "auto", "1,,2", "\xff", "9223372036854775807ns", "1h1m1s1ms1us1ns",
	} {
		f.Add(given)
	}
	f.Fuzz(func(t *testing.T, given string) {
		for _, make := range []func() text{
			func() text { return new(Duration) }, func() text { return new(Signal) }, func() text { return new(Umask) },
			func() text { return new(ExitCodes) }, func() text { return new(FDs) }, func() text { return new(Report) },
			func() text { return new(LogFormat) },
		} {
			first, second := make(), make()
			if first.UnmarshalText([]byte(given)) != nil {
				continue
			}
			if err := second.UnmarshalText([]byte(first.String())); err != nil || !reflect.DeepEqual(first, second) {
				t.Errorf("%T of %q says %q, which is %v, %v", first, given, first, second, err)
			}
		}
	})
}
