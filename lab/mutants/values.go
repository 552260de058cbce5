package main

// values are bugs of the causal core and of the replicated types.
func values() []mutant {
	const causal, crdt = "./internal/causal", "./crdt"
	return []mutant{
		{
			name:   "merge without checking whether the other side has seen an atom",
			rule:   "an atom that one side has seen and does not hold was removed",
			edits:  in("internal", "return !seenB.Covers(d) || inB && eb.Has(d)", "return true"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition"},
		},
		{
			name:   "merge restores removed atoms",
			rule:   "an atom that one side has seen and does not hold was removed",
			edits:  in("internal", "if !seenA.Covers(l.Dot) {", "if true {"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition"},
		},
		{
			name:   "clear the whole value instead of the atoms that the origin had seen",
			rule:   "a clear removes the atoms that deps cover",
			edits:  in("internal", "s = s.Clear(deps)", "s = Store{marks: s.marks}"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition|TestApply_Clear"},
		},
		{
			name:   "a removal takes atoms that it has not seen",
			rule:   "a removal names path and dot: concurrent adds win [R6]",
			edits:  in("internal", "return o != d })", "return false })"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition"},
		},
		{
			name:   "the earlier of two resets counts",
			rule:   "marks join by the later reset point [R14]",
			edits:  in("internal", "return m.N > o.N", "return m.N < o.N"),
			killer: histories("300"),
		},
		{
			name:   "a reset also subtracts from a chain that began after it",
			rule:   "a reset subtracts each addition that it has seen once [R14]",
			edits:  in("internal", "ok && t.Since <= m.N && m.N < l.N {", "ok && m.N < l.N {"),
			killer: killer{pkg: crdt, run: "TestCounter_ResetRacesIncrement|TestExhaustive_CounterInMap"},
		},
		{
			name:   "of equal stamps, the smaller replica wins",
			rule:   "of equal stamps, the larger replica wins",
			edits:  in("crdt", "if stampOf(l) >= stampOf(last) {", "if stampOf(l) > stampOf(last) {"),
			killer: killer{pkg: crdt, run: "TestLWWRegister_EqualStamps|TestLaws_LWWRegister"},
		},
		{
			name:   "a reset leaves no mark",
			rule:   "an increment concurrent with a reset carries the old total, and the mark subtracts it [R14]",
			edits:  in("internal", "if !slot || owner == d.Replica {", "if slot || owner == d.Replica {"),
			killer: killer{pkg: crdt, run: "TestCounter_ResetRacesIncrement"},
		},
		{
			name:   "a decoder accepts an encoding that no encoder produces",
			rule:   "a state has exactly one encoding",
			edits:  in("internal", "if slices.Contains(t.used, false) {", "if false {"),
			killer: killer{pkg: causal, run: "TestState_RefusesEveryOtherForm"},
		},
		{
			name:   "the delta of a change omits paths that no step recorded",
			rule:   "a broken trail is not used: the states are compared",
			edits:  in("crdt", "if !from.Same(t.at) || len(t.paths) == maxTrail {", "if len(t.paths) == maxTrail {"),
			killer: killer{pkg: crdt, run: "TestLaws_ORSet"},
		},
		{
			name:   "a map forgets to count a key whose value shrank",
			rule:   "the index of a store matches its paths",
			edits:  in("internal", "if s.atoms.CountPrefix(path[:end]) == 0 {", "if true {"),
			killer: killer{pkg: causal, run: "TestIndex_FollowsThePaths"},
		},
		{
			name:   "a store built from ordered atoms has no index of its maps",
			rule:   "the index of a store matches its paths, however the store was made",
			edits:  in("internal", "\tb.index.add(b.path)\n", ""),
			killer: killer{pkg: causal, run: "TestIndex_OfADecodedAndABuiltState"},
		},
		{
			name:   "a merge within an update returns the later state as the join",
			rule:   "a state that has seen more is the join only if the other has recorded everything it holds as seen",
			edits:  in("crdt", "v.settled() && v.seen.Before(o.seen)", "v.seen.Before(o.seen)"),
			killer: killer{pkg: crdt, run: "TestMerge_WithinAnUpdateKeepsWhatItMade"},
		},
		{
			name:   "a record replaces its state by the state of a field",
			rule:   "a record adopts the changes of each field",
			edits:  in("internal", "if s.Same(base) { // the usual case: at most one field changed", "if true {"),
			killer: killer{pkg: crdt, run: "TestLaws_Record"},
		},
	}
}
