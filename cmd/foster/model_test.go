package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fosterinit/foster/internal/nstest"
)

// modelled is one random command and what it may end with.
type modelled struct {
	name, kind, policy string
	restarts           int // MAX_RESTARTS
}

// TestAnyCommandsEndAsTheRulesSay throws random commands, exits, signals and deadlines at the supervisor. After each
// round nothing may be left, it must have come to its end in bounded time, and the exit code must be what the report
// and the rule give.
func TestAnyCommandsEndAsTheRulesSay(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("MODEL_SEED"); given != "" {
		seed, _ = strconv.ParseUint(given, 10, 64)
	}
	for i := range uint64(8) {
		t.Run(fmt.Sprintf("MODEL_SEED=%d", seed+i), func(t *testing.T) {
			t.Parallel()
			model(t, rand.New(rand.NewPCG(seed+i, 0)))
		})
	}
}

func model(t *testing.T, r *rand.Rand) {
	w := namespaces()[r.IntN(2)]
	var names, variables []string
	var all []modelled
	for i := range 1 + r.IntN(6) {
		m := modelled{name: fmt.Sprintf("c%d", i), kind: []string{"main", "main", "main", "init", "sidecar"}[r.IntN(5)], policy: []string{"Never", "OnFailure"}[r.IntN(2)], restarts: 1 + r.IntN(3)}
		if i == 0 {
			m.kind = "main"
		}
		all, names = append(all, m), append(names, m.name)
		key := strings.ToUpper(m.name)
		variables = append(variables, key+"_COMMAND="+shell(behaviour(r)), key+"_TYPE="+m.kind, key+"_RESTART_POLICY="+m.policy,
			fmt.Sprintf("%s_MAX_RESTARTS=%d", key, m.restarts), key+"_BACKOFF=1ms", key+"_GRACE_PERIOD=300ms", key+"_TIMEOUT=3",
			key+"_LOG="+[]string{"inherit", "prefix", "json", "null"}[r.IntN(4)])
	}
	run := many(w, strings.Join(names, ","), variables...).Start(t)
	told := r.IntN(2) == 0
	if told {
		sig := []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGQUIT}[r.IntN(3)]
		run.TrySignal(sig, time.Duration(r.IntN(400))*time.Millisecond) // any moment is good
	}
	o := run.Wait().Clean().Before(time.Minute)
	if !told {
		if want := expected(o, all); o.Code != want {
			t.Errorf("exit code %d, want %d\n%s\n%s", o.Code, want, strings.Join(variables, "\n"), o)
		}
	} else if codes := ends(o); !slices.Contains(codes, o.Code) {
		t.Errorf("exit code %d is nobody's of %v\n%s", o.Code, codes, o)
	}
}

// behaviour is a script that leaves all kinds of processes and ends in one way or another.
func behaviour(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(3) {
		b.WriteString([]string{
			"setsid sleep 7071 & ", `(trap "" TERM; setsid sleep 7071 &) ; `, "sleep 7071 & ", `(setsid sh -c "sleep 7071 & sleep 7071" &) ; `, "echo text; ", "seq 1 200; ",
			`trap "" TERM; `, `trap "exit 5" TERM; `,
		}[r.IntN(8)])
	}
	fmt.Fprintf(&b, "sleep 0.%d; ", r.IntN(5))
	b.WriteString([]string{"exit 0", "exit 0", "exit 0", "exit 7", "exit 9", "kill -KILL $$", "exec sleep 7071", "kill -STOP $$"}[r.IntN(8)])
	return b.String()
}

// expected is the exit code that the rule gives for what was reported, where nobody asked for an end.
func expected(o *nstest.Outcome, all []modelled) int {
	runs := map[string]int{}
	for _, r := range o.Reports() {
		i := slices.IndexFunc(all, func(m modelled) bool { return m.name == r.Name })
		runs[r.Name]++
		final := all[i].policy == "Never" || runs[r.Name] > all[i].restarts
		if r.ExitCode != 0 && final && all[i].kind != "sidecar" {
			return r.ExitCode
		}
		// A sidecar that failed for good is a cause only where somebody still waited for it.
		if r.ExitCode != 0 && final && o.Code == r.ExitCode {
			return r.ExitCode
		}
	}
	return 0
}

// ends are the codes that any run has ended with, and success.
func ends(o *nstest.Outcome) []int {
	codes := []int{0}
	for _, r := range o.Reports() {
		codes = append(codes, r.ExitCode)
	}
	return codes
}
