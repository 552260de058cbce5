//go:build !race

package core

const defaultSeeds = 500
