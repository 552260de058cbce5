//go:build long

package core_test

const usualSeeds = 5000
