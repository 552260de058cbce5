//go:build race

package arbiter_test

// A machine has no goroutines: the race detector only makes the histories slower.
const usualSeeds = 200
