//go:build !race

package core

const defaultSeeds, defaultSmall = 500, 2000
