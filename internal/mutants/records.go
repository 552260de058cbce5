package main

// records are bugs of a membership that is a record in a store.
func records() []mutant {
	return []mutant{
		{
			name:   "take a place without having been filled",
			rule:   "where members count, a newcomer is filled before it takes its place [M9]",
			edits:  in(replDir+"admit.go", "return c.roll.filled || c.roll.size == 0", "return true"),
			killer: scenario("TestRecord_ThoseThatBeginApartAreOneCluster"),
		},
		{
			name:   "stop the last life as any other",
			rule:   "an orderly stop takes a member out of the count [M4]",
			edits:  in("node/life.go", "\t\tr.lives.Last()\n", ""),
			killer: killer{pkg: "./node", run: "TestRun_TheMembershipMayBeADocumentOfTheLeaseStore"},
		},
		{
			name:   "change the membership before the record",
			rule:   "what changes the membership is written to the record first [M9]",
			edits:  in(replDir+"record.go", "\tcase !c.cfg.Recorded:\n\t\tc.change(m)", "\tcase true:\n\t\tc.change(m)"),
			killer: scenario("TestRecord_ARunningClusterGoesOnWithoutTheStore"),
		},
		{
			name:   "a swap that found another version counts as done",
			rule:   "of two changes of the record one comes after the other [M9]",
			edits:  in(replDir+"record.go", "case !ev.Swapped:", "case false:"),
			killer: scenario("TestRecord_ThoseThatBeginApartAreOneCluster"),
		},
		{
			name:   "the place of a lost answer is that of a restart",
			rule:   "a newcomer stays one until it counts [M9]",
			edits:  in(replDir+"record.go", "c.roll.inc, c.roll.entering = r.inc, c.roll.roster.entering", "c.roll.inc, c.roll.entering = r.inc, false"),
			killer: scenario("TestRecord_AnAnswerThatIsLostLeavesANewcomerANewcomer"),
		},
		{
			name:   "an older memory is merged into a later one",
			rule:   "of two memories of one record the later one stands [M9]",
			edits:  in(replDir+"record.go", "m.cluster == own.cluster && m.epoch < own.epoch:", "m.cluster == own.cluster && m.epoch == 1<<60:"),
			killer: scenario("TestRecord_OneThatWentBackIsWrittenAgain"),
		},
		{
			name:   "take the record of another cluster",
			rule:   "a record of another cluster lets nobody in [M9]",
			edits:  in(replDir+"record.go", "case own.epoch > 0 && m.cluster != own.cluster:", "case false:"),
			killer: scenario("TestRecord_BadOnesAreNamed"),
		},
		{
			name:   "the last one leaves without handing over",
			rule:   "the last one hands over to all that wait for a place [M9]",
			edits:  in(replDir+"leave.go", "\t\t\ts.need = c.heirs() // any", "\t\t\ts.need = 0 // any"),
			killer: scenario("TestRecord_TheLastOneHandsOverToANewcomer"),
		},
		{
			name:   "one that was thrown out throws out others",
			rule:   "with Force on two sides the second one finds itself thrown out [M9]",
			edits:  in(replDir+"record.go", "(own.inc != x.by || own.rank == gone)", "own.inc.number == 0"),
			killer: scenario("TestRecord_ForceWorksOnOneSide"),
		},
		{
			name:   "believe a damaged record",
			rule:   "a record is refused unless its checksum is right [M9]",
			edits:  in(replDir+"recordtext.go", "err != nil || !bytes.Equal(again, b)", "err != nil && !bytes.Equal(again, b)"),
			killer: scenario("TestRecord_BadOnesAreNamed"),
		},
		{
			name:   "call the store of the record while it is at a call",
			rule:   "the store of the record has one call at a time [M9]",
			edits:  in("distributeddata/membership.go", "if k.busy.CompareAndSwap(false, true) {", "if k.busy.CompareAndSwap(false, true) || true {"),
			killer: killer{pkg: "./distributeddata", run: "TestMembership_AStoreThatMisbehavesBlocksNothing"},
		},
	}
}
