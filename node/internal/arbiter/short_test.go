//go:build !long

package arbiter_test

// Few: make test sets the tag long, and plays more.
const usualSeeds = 200
