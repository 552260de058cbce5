//go:build !long

package crdt_test

// Few: make test sets the tag long, and plays more.
const exhaustiveSteps = 5
