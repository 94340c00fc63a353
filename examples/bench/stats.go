package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// quantile of unsorted values by nearest rank; the median of an even number is the upper one, which is never in foster's favour
// where less is better.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// A ratio of medians, with its least and greatest value over parts of the same run.
type ratio struct {
	value, low, high float64
}

// ratioOf divides the medians of two paired series. The spread is that of the ratio over ten blocks of consecutive rounds, or
// over single rounds where there are fewer than fifty: what a shorter run might have shown.
func ratioOf(a, b []float64) ratio {
	block := 1
	if len(a) >= 50 {
		block = len(a) / 10
	}
	r := ratio{median(a) / median(b), math.Inf(1), math.Inf(-1)}
	for i := 0; i+block <= len(a); i += block {
		v := median(a[i:i+block]) / median(b[i:i+block])
		r.low, r.high = min(r.low, v), max(r.high, v)
	}
	return r
}

func (r ratio) String() string {
	return fmt.Sprintf("%s x (%.2f to %.2f)", above(r.value, 3), r.low, r.high)
}

// above prints a number that should be small, and never as less than it is.
func above(v float64, digits int) string {
	scale := math.Pow10(digits)
	return fmt.Sprintf("%.*f", digits, math.Ceil(v*scale-1e-9)/scale)
}

// below prints a number that should be large, and never as more than it is.
func below(v float64, digits int) string {
	scale := math.Pow10(digits)
	return fmt.Sprintf("%.*f", digits, math.Floor(v*scale+1e-9)/scale)
}

func atMost(v, goal float64) string {
	if v <= goal {
		return "met"
	}
	return fmt.Sprintf("MISSED by %s %%", above((v/goal-1)*100, 1))
}

func atLeast(v, goal float64) string {
	if v >= goal {
		return "met"
	}
	return fmt.Sprintf("MISSED by %s %%", above((1-v/goal)*100, 1))
}

func ms(ns float64) string { return above(ns/1e6, 2) + " ms" }

func spread(values []float64) string {
	return fmt.Sprintf("median %s, %s to %s", ms(median(values)), ms(slices.Min(values)), ms(slices.Max(values)))
}

func seconds(values []time.Duration) string {
	var all []string
	for _, v := range values {
		all = append(all, above(v.Seconds(), 2))
	}
	return strings.Join(all, " ")
}
