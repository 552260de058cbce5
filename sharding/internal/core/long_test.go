//go:build long

package core_test

const (
	usualSeeds      = 400
	usualDeviations = 2
)
