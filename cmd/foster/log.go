package main

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/lmittmann/tint"

	supervisor "github.com/fosterinit/foster/init"
	"github.com/fosterinit/foster/internal/fdio"
)

// newLogger returns a logger to standard error that does nothing until there is
// something to say: in a good run there is not.
func newLogger(level slog.Level, format supervisor.LogFormat) *slog.Logger {
	return slog.New(&lazyHandler{level: level, make: sync.OnceValue(func() slog.Handler { return newHandler(level, format) })})
}

func newHandler(level slog.Level, format supervisor.LogFormat) slog.Handler {
	stderr := &fdio.Lossy{Writer: stderr}
	switch {
	case format == "json":
		return slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})
	case format == "auto" && fdio.IsTerminal(stderr.FD):
		return tint.NewTextHandler(stderr, &tint.Options{Level: level, NoColor: os.Getenv("NO_COLOR") != ""})
	}
	return slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})
}

// paint puts the command's name before its lines, in a colour of its own where a
// terminal shows it.
func paint(name string, index, fd int) string {
	if !fdio.IsTerminal(fd) || os.Getenv("NO_COLOR") != "" {
		return name + " | "
	}
	colours := [...]string{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}
	return "\x1b[" + colours[index%len(colours)] + "m" + name + " |\x1b[0m "
}

// lazyHandler makes the handler with the first record.
type lazyHandler struct {
	level slog.Level
	make  func() slog.Handler
}

func (h *lazyHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *lazyHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.make().Handle(ctx, r)
}

func (h *lazyHandler) WithAttrs(attrs []slog.Attr) slog.Handler { return h.make().WithAttrs(attrs) }
func (h *lazyHandler) WithGroup(name string) slog.Handler       { return h.make().WithGroup(name) }
