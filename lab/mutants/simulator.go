package main

// simulator lists bugs of the simulator, which finds the other bugs.
func simulator() []mutant {
	const pkg = "./internal/sim"
	by := func(test string) killer { return killer{pkg: pkg, run: "^" + test + "$"} }
	return []mutant{
		{
			name:   "the simulator does not check invariants",
			rule:   "invariants are checked after every step",
			edits:  in("internal", "for i := range w.always {", "for i := range w.always[:0] {"),
			killer: by("TestAlways_IsCheckedAfterEveryStep"),
		},
		{
			name:   "a history that is played twice is compared with itself",
			rule:   "a seed determines one history",
			edits:  in("internal", "w.trace.sum() == second.play(history).trace.sum()", "w.trace.sum() == w.trace.sum()"),
			killer: by("TestRun_SeesWhatDoesNotComeFromTheSeed"),
		},
		{
			name:   "shortening accepts a history with any other failure",
			rule:   "shortening preserves the kind of failure",
			edits:  in("internal", "if !w.Failed() || w.kind != s.kind {", "if !w.Failed() {"),
			killer: by("TestFind_ShorteningKeepsTheKindOfFailure"),
		},
		{
			name:   "a campaign reports the seed after the one that failed",
			rule:   "a campaign reports the smallest failing seed",
			edits:  in("internal", "f = examine(slices.Min(failed), seeds.Whole, history)", "f = examine(slices.Min(failed)+1, seeds.Whole, history)"),
			killer: by("TestFind_TellsTheSeedThatFails"),
		},
		{
			name:   "a saved message gets the delay of any other message",
			rule:   "a saved case determines everything that happens",
			edits:  in("internal", "if g, ok := w.given.fates[l]; ok {", "if g, ok := w.given.fates[l]; ok && g.copies == 0 {"),
			killer: by("TestCase_SaysAllThatHappens"),
		},
		{
			name:   "explore only the first alternative of each choice",
			rule:   "an exploration plays every alternative",
			edits:  in("internal", "x.value >= int(from.points[x.point])", "x.value >= 2"),
			killer: by("TestExplore_EnumeratesWhatIsLeftToChance"),
		},
		{
			name:   "explore no two deviations in a row",
			rule:   "an exploration plays every history within its deviations",
			edits:  in("internal", "return int(d[len(d)-1].point) + 1", "return int(d[len(d)-1].point) + 2"),
			killer: by("TestExplore_PlaysEachHistoryOnce"),
		},
	}
}
