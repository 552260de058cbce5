//go:build long

package core

const defaultSeeds, defaultSmall = 500, 2000
