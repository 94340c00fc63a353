package main

import (
	"os"
	"testing"

	"github.com/fosterinit/foster/internal/nstest"
)

// The end-to-end tests run the built binary. Each is a case from the field, under the number it has there: T for
// timeouts and trees, E for exit codes, S for stopping, L for output, X for surroundings.

func TestMain(m *testing.M) { os.Exit(nstest.Main(m)) }

// in runs a row in each of these worlds.
func in(t *testing.T, worlds []nstest.World, row func(t *testing.T, w nstest.World)) {
	for _, w := range some(t, worlds) {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			row(t, w)
		})
	}
}

// alone is in, one world after the other and nothing beside them: for rows that measure, and for storms.
func alone(t *testing.T, worlds []nstest.World, row func(t *testing.T, w nstest.World)) {
	for _, w := range some(t, worlds) {
		t.Run(w.Name, func(t *testing.T) { row(t, w) })
	}
}

// some is all worlds, and with the race detector one of them, another for another row: what it looks for does not depend
// on the world, and it takes its time.
func some(t *testing.T, worlds []nstest.World) []nstest.World {
	if !nstest.Race || len(worlds) == 0 {
		return worlds
	}
	return worlds[len(t.Name())%len(worlds):][:1]
}

func everywhere() []nstest.World { return append(namespaces(), containers()...) }

func namespaces() []nstest.World {
	return []nstest.World{nstest.Subreaper(), nstest.PID1()}
}

// containers are none with the race detector, which the released binary in the image does not have.
func containers() []nstest.World {
	if nstest.Race {
		return nil
	}
	return []nstest.World{nstest.Docker()}
}
