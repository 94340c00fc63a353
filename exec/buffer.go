package exec

import "sync"

// Buffer is a writer for Stdout or Stderr with a bound on memory: it keeps the
// first Max bytes and counts the rest, so that a command that prints for ever
// is neither blocked nor kept. The zero Max keeps nothing. All methods may be
// called at any time, so what came before a deadline can be had.
type Buffer struct {
	Max int // bytes

	mu      sync.Mutex
	kept    []byte
	dropped int64
}

// Write never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := max(0, min(len(p), b.Max-len(b.kept)))
	b.kept = append(b.kept, p[:n]...)
	b.dropped += int64(len(p) - n)
	return len(p), nil
}

// Bytes returns a copy of what was kept.
func (b *Buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]byte(nil), b.kept...)
}

// Dropped returns how many bytes came after the first Max.
func (b *Buffer) Dropped() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}
