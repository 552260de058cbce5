//go:build !race

package core_test

// raced tells that the race detector is on.
const raced = false
