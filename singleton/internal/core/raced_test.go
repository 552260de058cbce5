//go:build race

package core_test

// A machine has no goroutines: the race detector only makes the histories slower.
const usualSeeds = 300
