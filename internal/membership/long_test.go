//go:build long

package membership

const usualSeeds = 200
