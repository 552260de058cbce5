package main

import (
	"slices"
	"strings"
)

// mutant is one planted bug.
type mutant struct {
	name   string // what the program does wrong
	rule   string // what it breaks
	edits  []edit
	files  []string // of the edits; see lab.find
	killer killer
}

// edit replaces a text that occurs once in the files below a directory, so that code may move
// between them.
type edit struct{ dir, old, new string }

// killer is the test that has to fail.
type killer struct {
	pkg, run string
	args     string // of the test binary
}

// flags returns the arguments of the test binary. A test that draws its inputs must not save those
// that fail: it would begin with them when the next bug is planted.
func (k killer) flags() []string {
	flags := strings.Fields(k.args)
	switch k.pkg {
	case "./crdt", "./internal/causal", "./internal/stash", "./distributeddata/internal/bases":
		flags = append(flags, "-rapid.nofailfile")
	}
	return flags
}

// table returns all planted bugs.
func table() []mutant {
	return slices.Concat(leases(), stores(), replication(), bases(), levels(), restores(), incarnations(), quorums(), records(), values(), singletons(), shards(), entities(), messages(), members(), strangers(), arbiters(), simulator(), subscriptions(), collections(), expiries(), disks(), diskStores(), cockpits(), mistakes())
}

// in is one edit.
func in(dir, old, replacement string) []edit { return []edit{{dir, old, replacement}} }

// golden is the test that plays the scenario of that name.
func golden(pkg, scenario string) killer {
	return killer{pkg: pkg, run: "TestGolden/^" + scenario + "$"}
}

// earlier is the edit that puts the second of two adjacent texts first.
func earlier(dir, first, second string) []edit { return in(dir, first+second, second+first) }
