package main

// values are bugs of the causal core and of the replicated types.
func values() []mutant {
	const dir, causal, crdt = "internal/causal/", "./internal/causal", "./crdt"
	return []mutant{
		{
			name:   "merge without looking at what the other has seen",
			rule:   "an atom that one side has seen and does not hold was removed",
			edits:  in(dir+"store.go", "return !seenB.Covers(d) || inB && eb.Has(d)", "return true"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition"},
		},
		{
			name:   "merge brings removed atoms back",
			rule:   "an atom that was seen and is not here was removed",
			edits:  in(dir+"store.go", "if !seenA.Covers(l.Dot) {", "if true {"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition"},
		},
		{
			name:   "clear everything instead of what the origin had seen",
			rule:   "a clear takes away the atoms that deps cover",
			edits:  in(dir+"change.go", "s = s.Clear(deps)", "s = Store{marks: s.marks}"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition|TestApply_Clear"},
		},
		{
			name:   "a remove takes atoms it has not seen",
			rule:   "a removal names path and dot: concurrent adds win [R4, R5]",
			edits:  in(dir+"store.go", "return o != d })", "return false })"),
			killer: killer{pkg: causal, run: "TestJoin_AgainstDefinition"},
		},
		{
			name:   "of two resets the earlier one counts",
			rule:   "marks join by the later reset point [R9]",
			edits:  in(dir+"store.go", "return m.N > o.N", "return m.N < o.N"),
			killer: histories("300"),
		},
		{
			name:   "a reset also takes from a chain begun after it",
			rule:   "a reset takes away the additions it has seen, each once [R9]",
			edits:  in(dir+"counter.go", "ok && t.Since <= m.N && m.N < l.N {", "ok && m.N < l.N {"),
			killer: killer{pkg: crdt, run: "TestCounter_ResetRacesIncrement|TestExhaustive_CounterInMap"},
		},
		{
			name:   "of equal stamps the smaller replica wins",
			rule:   "of equal stamps the larger replica wins",
			edits:  in("crdt/lwwregister.go", "if stampOf(l) >= stampOf(last) {", "if stampOf(l) > stampOf(last) {"),
			killer: killer{pkg: crdt, run: "TestLWWRegister_EqualStamps|TestLaws_LWWRegister"},
		},
		{
			name:   "a reset leaves no mark",
			rule:   "an increment concurrent with a reset carries the old total; the mark takes that off [R9]",
			edits:  in(dir+"counter.go", "if !slot || owner == d.Replica {", "if slot || owner == d.Replica {"),
			killer: killer{pkg: crdt, run: "TestCounter_ResetRacesIncrement"},
		},
		{
			name:   "a decoder takes an encoding that no encoder writes",
			rule:   "one state, one encoding",
			edits:  in(dir+"table.go", "if slices.Contains(t.used, false) {", "if false {"),
			killer: killer{pkg: causal, run: "TestState_RefusesEveryOtherForm"},
		},
		{
			name:   "the delta of a change leaves out what no step told of",
			rule:   "a trail that is broken is not used: the states are compared",
			edits:  in("crdt/trail.go", "if !from.Same(t.at) || len(t.paths) == maxTrail {", "if len(t.paths) == maxTrail {"),
			killer: killer{pkg: crdt, run: "TestLaws_ORSet"},
		},
		{
			name:   "a map forgets to count a key whose value shrank",
			rule:   "the index of a store is that of its paths",
			edits:  in(dir+"index.go", "if s.atoms.CountPrefix(path[:end]) == 0 {", "if true {"),
			killer: killer{pkg: causal, run: "TestIndex_FollowsThePaths"},
		},
		{
			name:   "a merge within an update takes the later state for the whole",
			rule:   "a state that has seen more is the join only if the other has noted all it holds as seen",
			edits:  in("crdt/value.go", "v.settled() && v.seen.Before(o.seen)", "v.seen.Before(o.seen)"),
			killer: killer{pkg: crdt, run: "TestMerge_WithinAnUpdateKeepsWhatItMade"},
		},
		{
			name:   "a record takes a field's state in the place of its own",
			rule:   "a record takes from each field what changed there",
			edits:  in(dir+"change.go", "if s.Same(base) { // the usual case: one field changed, or none", "if true {"),
			killer: killer{pkg: crdt, run: "TestLaws_Record"},
		},
	}
}
