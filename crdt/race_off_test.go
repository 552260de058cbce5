//go:build !race

package crdt_test

const raceEnabled = false
