package supervisor

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// The table as it is to be, a line for each state: what is done, "-" for what changes nothing, nothing for what cannot
// happen. It is written out by hand: whoever changes the lifecycle says so here.
const wanted = `
waiting: needs met=start, stop=giveUp
starting: launched=run, stop=haltEarly, keeper died=fall, ended=over
running: shown ready=becomeReady, not ready=failReadiness, deadline=expire, stop=halt, keeper died=fall, ended=over
ready: deadline=expire, stop=halt, keeper died=fall, ended=over
pre-stopping: deadline=-, stop=-, pre-stopped=tell, grace over=kill, keeper died=fall, ended=over
stopping: launched=-, deadline=-, stop=-, grace over=kill, keeper died=fall, ended=over
fallen: stop=-, grace over=-, ended=over
backing off: stop=giveUp, waited=start
completed: stop=-
failed: stop=-
stopped: stop=-
`

func TestEveryEventInEveryStateIsWhatTheTableSays(t *testing.T) {
	var got strings.Builder
	got.WriteString("\n")
	for s, row := range lifecycle() {
		var cells []string
		for e := range events {
			if do := row[e]; do != nil {
				name := runtime.FuncForPC(reflect.ValueOf(do).Pointer()).Name()
				name = name[strings.LastIndex(name, ".")+1:]
				if name == "ignore" {
					name = "-"
				}
				cells = append(cells, fmt.Sprintf("%v=%s", e, name))
			}
		}
		fmt.Fprintf(&got, "%v: %s\n", state(s), strings.Join(cells, ", "))
	}
	if got.String() != wanted {
		t.Errorf("got%s\nwant%s", got.String(), wanted)
	}
}

// What cannot happen is said and changes nothing.
func TestAnEventOutOfPlaceChangesNothing(t *testing.T) {
	var log bytes.Buffer
	sup := &supervisor{table: lifecycle(), log: slog.New(slog.NewTextHandler(&log, nil))}
	for s := range states {
		for e := range events {
			if sup.table[s][e] != nil {
				continue
			}
			log.Reset()
			svc := &service{command: &command{Name: "a"}, sup: sup, state: s}
			svc.handle(e)
			if svc.state != s || !strings.Contains(log.String(), "out of place") {
				t.Errorf("%v, %v: now %v, said %q", s, e, svc.state, log.String())
			}
		}
	}
}
