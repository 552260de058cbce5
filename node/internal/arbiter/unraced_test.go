//go:build !race

package arbiter_test

const usualSeeds = 1000
