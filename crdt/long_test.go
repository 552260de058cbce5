//go:build long

package crdt_test

const exhaustiveSteps = 6
