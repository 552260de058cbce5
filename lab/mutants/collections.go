package main

// collections are the bugs of sharded maps and sets.
func collections() []mutant {
	const pkg = "./distributeddata"
	return []mutant{
		{
			name:   "a different number of shards is not detected",
			rule:   "while entries of another layout exist, every operation returns an error",
			edits:  in("distributeddata", "if id := l.stray(p); id != \"\" {", "if id := l.stray(p); id == l.name {"),
			killer: killer{pkg: pkg, run: "^TestSharded_OtherNumberOfShardsIsNamed$"},
		},
		{
			name:   "entries of another layout are detected only if they sort before this layout",
			rule:   "while entries of another layout exist, every operation returns an error",
			edits:  in("distributeddata", "for id, now := range p.entries(l.family, l.after) {", "for id, now := range p.entries(l.family, l.family+\"~\") {"),
			killer: killer{pkg: pkg, run: "^TestSharded_OtherNumberOfShardsIsNamed$"},
		},
		{
			name:   "elements are assigned to other shards than before",
			rule:   "later versions find the elements that this version wrote",
			edits:  in("distributeddata", "xxhash.Sum64(encoded) % uint64(l.shards)", "xxhash.Sum64(encoded) / 7 % uint64(l.shards)"),
			killer: killer{pkg: pkg, run: "^TestSharded_LayoutNeverChanges$"},
		},
		{
			name:   "a transaction over several entries exceeds a limit",
			rule:   "an update that exceeds a limit is refused and changes nothing",
			edits:  in("distributeddata", "\t*added++\n\tn := *added", "\tn := *added + 1"),
			killer: killer{pkg: pkg, run: "^TestLimits_EntriesAndElements$"},
		},
		{
			name:   "do not subtract the bytes that an update removes",
			rule:   "MaxBytes bounds the size of a value after the update",
			edits:  in("distributeddata", "w.bytes += added - gone", "w.bytes += added"),
			killer: killer{pkg: pkg, run: "^TestLimits_Bytes$"},
		},
		{
			name:   "do not subtract the bytes of atoms that were replaced or removed",
			rule:   "MaxBytes bounds the size of a value after the update",
			edits:  in("distributeddata", "bytes-entryBytes(path, old)", "bytes"),
			killer: killer{pkg: "./distributeddata/internal/history", run: "^TestFingerprint_OfChangedStores$"},
		},
		{
			name:   "do not count the bytes of a received state",
			rule:   "MaxBytes bounds the size of a value after the update",
			edits:  in("distributeddata", "b.bytes+atomBytes(a.Path, a.Leaf)", "b.bytes"),
			killer: histories("20"),
		},
	}
}
