// Package graintest runs grains on real processes on a faulty network: members join, leave, crash,
// freeze and are cut off while callers at all members call grains, with the lookup of package
// grains and, for comparison, with Proto.Actor's disthash.
//
//	go test ./lab/graintest -v -args -long
package graintest
