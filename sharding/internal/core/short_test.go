//go:build !long

package core_test

// Few: make test sets the tag long, and plays more.
const (
	usualSeeds      = 40
	usualDeviations = 1
)
