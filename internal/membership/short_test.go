//go:build !long

package membership

// Few: make test sets the tag long, and plays more.
const usualSeeds = 50
