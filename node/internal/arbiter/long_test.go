//go:build long

package arbiter_test

const usualSeeds = 1000
