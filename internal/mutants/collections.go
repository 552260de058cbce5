package main

// collections are the bugs of sharded maps and sets.
func collections() []mutant {
	const file, pkg = "distributeddata/sharded.go", "./distributeddata"
	return []mutant{
		{
			name:   "another number of shards is not noticed",
			rule:   "while entries of another layout are there every operation says so",
			edits:  in(file, "if id := l.stray(p); id != \"\" {", "if id := l.stray(p); id == l.name {"),
			killer: killer{pkg: pkg, run: "^TestSharded_OtherNumberOfShardsIsNamed$"},
		},
		{
			name:   "entries of other layouts are looked for in front alone",
			rule:   "while entries of another layout are there every operation says so",
			edits:  in(file, "for id, now := range p.entries(l.family, l.after) {", "for id, now := range p.entries(l.family, l.family+\"~\") {"),
			killer: killer{pkg: pkg, run: "^TestSharded_OtherNumberOfShardsIsNamed$"},
		},
		{
			name:   "elements lie elsewhere than before",
			rule:   "members of later versions find what those of this one wrote",
			edits:  in(file, "xxhash.Sum64(encoded) % uint64(l.shards)", "xxhash.Sum64(encoded) / 7 % uint64(l.shards)"),
			killer: killer{pkg: pkg, run: "^TestSharded_LayoutNeverChanges$"},
		},
		{
			name:   "a transaction of several entries goes past a limit",
			rule:   "one more than a limit is refused, and nothing is done",
			edits:  in("distributeddata/limits.go", "\t*added++\n\tn := *added", "\tn := *added + 1"),
			killer: killer{pkg: pkg, run: "^TestLimits_EntriesAndElements$"},
		},
	}
}
