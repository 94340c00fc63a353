package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestNumbersAreRoundedAgainstFoster(t *testing.T) {
	if got := above(1.5001, 3); got != "1.501" {
		t.Errorf("above(1.5001) = %s", got)
	}
	if got := above(1.5, 3); got != "1.500" {
		t.Errorf("above(1.5) = %s", got)
	}
	if got := below(0.9999, 3); got != "0.999" {
		t.Errorf("below(0.9999) = %s", got)
	}
	if got := atMost(1.50001, 1.5); got == "met" {
		t.Error("1.50001 is within 1.5")
	}
	if got := atLeast(0.99999, 1); got == "met" {
		t.Error("0.99999 is at least 1")
	}
}

func TestTheSpreadOfARatioIsThatOfItsBlocks(t *testing.T) {
	var a, b []float64
	for i := range 100 {
		a, b = append(a, float64(10+i/10)), append(b, 10)
	}
	if r := ratioOf(a, b); r.low != 1 || r.high != 1.9 || r.value != 1.5 {
		t.Errorf("ratio %+v", r)
	}
}

func TestACageResultIsReadFromItsLastLine(t *testing.T) {
	o, err := parseOutcome("elapsed_ns=7\nelapsed_ns=1500000000 status=35072 left=3\n")
	if err != nil || o.elapsed != 1500*time.Millisecond || o.status.ExitStatus() != 137 || o.left != 3 || o.output != "elapsed_ns=7" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := parseOutcome("cage: cannot join"); err == nil {
		t.Error("a cage without a result passes for one")
	}
}

func TestRoundsOfAnotherWidthAreRefused(t *testing.T) {
	if _, err := parseRounds([]byte("1 2\n3\n"), 2); err == nil {
		t.Error("a short round was accepted")
	}
	s, err := parseRounds([]byte("1 2\n3 4\n"), 2)
	if err != nil || s[1][1] != 4 {
		t.Errorf("%v, %v", s, err)
	}
}

func TestAMissingPeerIsSaid(t *testing.T) {
	if v := (peer{name: "no-such-init"}).version(); !strings.Contains(v, "MISSING") {
		t.Error(v)
	}
	r := against("x", "tini", 1.5, map[string][]float64{"foster": {1}})
	if !strings.Contains(r.verdict, "tini is missing") {
		t.Errorf("%+v", r)
	}
}

func TestAnUnknownFigureIsRefusedWithTheList(t *testing.T) {
	if _, err := choose("startup,nope"); err == nil || !strings.Contains(err.Error(), "storm") {
		t.Error(err)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	u, err := usageOf(os.Getpid())
	if err != nil || u.threads < 1 || u.anon == 0 || u.rss < u.anon {
		t.Errorf("%+v, %v", u, err)
	}
}
