//go:build race

package core_test

// A core has no goroutines: the race detector only makes the histories slower.
const (
	usualSeeds      = 40
	usualDeviations = 1
)
