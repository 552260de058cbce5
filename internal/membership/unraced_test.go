//go:build !race

package membership

const usualSeeds = 200
