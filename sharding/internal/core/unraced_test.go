//go:build !race

package core_test

const (
	usualSeeds      = 400
	usualDeviations = 2
)
