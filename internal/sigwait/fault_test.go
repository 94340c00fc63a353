package sigwait

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process of its own: the dispositions stay changed.
func TestASentFaultIsASignalAndAFaultIsStillAPanic(t *testing.T) {
	if os.Getenv("FAULT_CHILD") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestASentFault", "-test.v")
		cmd.Env = append(os.Environ(), "FAULT_CHILD=1")
		if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "--- PASS") {
			t.Errorf("%v\n%s", err, text)
		}
		return
	}
	if err := Catch(faults, 0); err != nil {
		t.Fatal(err)
	}
	for sig := range faults.All {
		if err := unix.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		for got := Set(0); !got.Has(sig); {
			got, _ = Wait(time.Now().Add(10*time.Second), -1)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a fault was no panic")
		}
	}()
	var p *int
	*p = 1
}
