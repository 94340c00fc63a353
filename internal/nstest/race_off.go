//go:build !race

package nstest

// Race says whether the tests, and with them foster, run under the race detector.
const Race = false
