//go:build !long

package core

// Few: make test sets the tag long, and plays more.
const defaultSeeds, defaultSmall = 50, 100
