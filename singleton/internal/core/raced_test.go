//go:build race

package core_test

// raced tells that the race detector is on, which makes a single goroutine ten times slower.
const raced = true
