package nstest

import (
	"io"
	"strings"
	"sync"
	"time"
)

// stream keeps what a reader yields and lets others wait for some of it. One goroutine, its pump, owns the reader and
// ends at EOF or when the reader is closed.
type stream struct {
	lock    sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed, and replaced, when text has grown
	ended   chan struct{} // closed at EOF
}

func pump(r io.Reader) *stream {
	s := &stream{changed: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(s, r)
	}()
	return s
}

func (s *stream) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *stream) String() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.String()
}

// expect waits until the text is in the stream.
func (s *stream) expect(text string, limit time.Duration) bool {
	for late := time.After(limit); ; {
		s.lock.Lock()
		found, changed := strings.Contains(s.text.String(), text), s.changed
		s.lock.Unlock()
		if found {
			return true
		}
		select {
		case <-changed:
		case <-s.ended:
			return strings.Contains(s.String(), text)
		case <-late:
			return false
		}
	}
}

// eof waits until every writer is gone.
func (s *stream) eof(limit time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(limit):
		return false
	}
}
