// Command exec-api is an HTTP server that runs commands for its clients. It is
// an example of the exec library: whatever a command starts is gone before
// the request that asked for it has been answered.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 10 * time.Second
	replyTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute

	// A killed tree may need the library's bound of 5 s to be swept, and its
	// client some time to take the reply.
	shutdownTimeout = 20 * time.Second
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on: whoever reaches it can run anything")
	flag.Parse()
	if err := run(*listen, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "exec-api: %v\n", err)
		os.Exit(1)
	}
}

func run(listen string, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("cannot use argument %q: there are only options", rest[0])
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %v", err)
	}
	slog.Info("server started", "address", listener.Addr().String())
	return serve(ctx, listener, newAPI())
}

// serve answers requests until ctx is done, then ends all that is running and
// returns when every reply has been written.
func serve(ctx context.Context, listener net.Listener, a *api) error {
	server := newServer(ctx, a.handler())
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }() // serve's own; Shutdown or an error of the listener ends it
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %v", err)
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(bound); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot shut down in %v: %v", shutdownTimeout, err)
	}
	slog.Info("server stopped")
	return nil
}

// newServer has neither a ReadTimeout nor a WriteTimeout. Both would go on
// counting while a command runs: the first would take its expiry for a client
// that went away and cancel the request, the second would leave no time to
// write the reply. The handler sets both deadlines for the spans they belong to.
func newServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		// Each request's context descends from ctx, so the end of the server
		// ends a running tree just as the client's departure does.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}
