//go:build race

package membership

// A core has no goroutines: the race detector only makes the histories slower.
const usualSeeds = 50
