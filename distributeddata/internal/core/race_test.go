//go:build race

package core

// A core has no goroutines, so the race detector only makes the histories slower.
const defaultSeeds, defaultSmall = 50, 100
