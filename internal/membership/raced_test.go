//go:build race

package membership

// A core has no goroutines: the race detector would only slow down the histories.
const usualSeeds = 50
