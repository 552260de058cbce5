package main

// stores are bugs of the lease stores that come with the module.
func stores() []mutant {
	return []mutant{
		{
			name:   "memory store writes without a comparison",
			rule:   "Swap writes only if the version is still old",
			edits:  in("coordination", "if e.mark() != old {", "if false {"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/S2_"},
		},
		{
			name:   "memory store reuses a version",
			rule:   "a version of a name is never reused",
			edits:  in("coordination", "e.record, e.version = next, s.mu.writes", "e.record, e.version = next, e.version%7+1"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/S3_"},
		},
		{
			name:   "file store takes no lock",
			rule:   "compare and write are one step",
			edits:  in("coordination", "if held, err := tryFlock(f); held || err != nil {", "if held, err := tryFlock(f); true || held {"),
			killer: killer{pkg: "./coordination/file", run: "TestStore_BlockedLock"},
		},
		{
			name:   "file store compares before it has the lock",
			rule:   "compare and write are one step",
			edits:  earlier("coordination", "\tlock, err := s.lock(ctx, name)\n\tif err != nil {\n\t\treturn \"\", refused(err)\n\t}\n\tdefer lock.release()\n", "\tpresent, err := s.read(name)\n\tif err != nil {\n\t\treturn \"\", refused(err)\n\t}\n"),
			killer: killer{pkg: "./coordination/file", run: "TestStore_ComparesUnderTheLock"},
		},
		{
			name:   "file store forgets the token with the record",
			rule:   "tokens grow even if the record is deleted",
			edits:  in("coordination", "if t <= l.token {", "if t >= 0 {"),
			killer: killer{pkg: "./coordination/file", run: "TestStore_DeletedRecord"},
		},
		{
			name:   "file store accepts damaged records",
			rule:   "a record that cannot be decoded is an error",
			edits:  in("coordination", "if sum != crc32.ChecksumIEEE(body) {", "if false {"),
			killer: killer{pkg: "./coordination/file", run: "TestStore_DamageIsUnknownNotTaken"},
		},
		{
			name:   "file store keeps two names in one file",
			rule:   "distinct names never share a record",
			edits:  in("coordination", "|| c == '-' ||", "|| c == '-' || c == '%' ||"),
			killer: killer{pkg: "./coordination/file", run: "TestConformance/A2_"},
		},
	}
}
