package main

// records are bugs of a membership that is kept as a record in a store.
func records() []mutant {
	return []mutant{
		{
			name:   "a removal under a record waits for a majority of answers",
			rule:   "under a record one answer of every quorum suffices [M5]",
			edits:  in("distributeddata", "s.need = size - quorum.MajorityOf(size) + 1", "s.need = quorum.MajorityOf(size)"),
			killer: scenario("TestRecord_OneOfTwoFinishesTheRemovalOfTheOther"),
		},
		{
			name:   "take a place without a refill",
			rule:   "where members count, a new member is filled before it takes its place [M9]",
			edits:  in("distributeddata", "return r.filled || r.Counted() == 0", "return true"),
			killer: scenario("TestRecord_ThoseThatBeginApartAreOneCluster"),
		},
		{
			name:   "stop the last incarnation like any other",
			rule:   "an orderly stop removes a member from the count [M4]",
			edits:  in("node", "\t\tr.incarnations.Last()\n", ""),
			killer: killer{pkg: "./lab/noderun", run: "TestRun_TheMembershipMayBeADocumentOfTheLeaseStore"},
		},
		{
			name:   "change the membership before the record",
			rule:   "a change of the membership is written to the record first [M9]",
			edits:  in("distributeddata", "if !c.cfg.Recorded {\n\t\tc.change(m)", "if c.members.viewed {\n\t\tc.change(m)"),
			killer: scenario("TestRecord_ARunningClusterGoesOnWithoutTheStore"),
		},
		{
			name:   "a swap that found another version counts as done",
			rule:   "changes of the record are sequential [M9]",
			edits:  in("distributeddata", "case !ev.Swapped:", "case false:"),
			killer: scenario("TestRecord_ThoseThatBeginApartAreOneCluster"),
		},
		{
			name:   "a place whose answer was lost counts as that of a restart",
			rule:   "a new member remains a new member until it counts [M9]",
			edits:  in("distributeddata", "= own.Inc, r.roster.entering, again", "= own.Inc, false, again"),
			killer: scenario("TestRecord_AnAnswerThatIsLostLeavesTheMemberNew"),
		},
		{
			name:   "merge an older memory into a later one",
			rule:   "of two memories of one record, the later one stands [M9]",
			edits:  in("distributeddata", "m.Cluster == own.Cluster && m.Epoch < own.Epoch:", "m.Cluster == own.Cluster && m.Epoch == 1<<60:"),
			killer: scenario("TestRecord_OneThatWentBackIsWrittenAgain"),
		},
		{
			name:   "accept the record of another cluster",
			rule:   "a record of another cluster admits no member [M9]",
			edits:  in("distributeddata", "case own.Epoch > 0 && m.Cluster != own.Cluster:", "case false:"),
			killer: scenario("TestRecord_BadOnesAreNamed"),
		},
		{
			name:   "the last member leaves without a hand-over",
			rule:   "the last member hands over to all members that wait for a place [M9]",
			edits:  in("distributeddata", "s.need = c.members.heirs(c.peers) // any", "s.need = 0 // any"),
			killer: scenario("TestRecord_LastMemberHandsOverToAllThatWait"),
		},
		{
			name:   "a member that was forced out forces out others",
			rule:   "with Force on two sides, the second side is forced out [M9]",
			edits:  in("distributeddata", "(own.Inc != x.by || own.Rank == quorum.Gone)", "own.Inc.Number == 0"),
			killer: scenario("TestRecord_ForceWorksOnOneSide"),
		},
		{
			name:   "accept a damaged record",
			rule:   "a record is accepted only if its checksum is correct [M9]",
			edits:  in("distributeddata", "err != nil || !bytes.Equal(again, b)", "err != nil && !bytes.Equal(again, b)"),
			killer: scenario("TestRecord_BadOnesAreNamed"),
		},
		{
			name:   "call the record's store while another call is pending",
			rule:   "the record's store has at most one pending call [M9]",
			edits:  in("distributeddata", "if k.busy.CompareAndSwap(false, true) {", "if k.busy.CompareAndSwap(false, true) || true {"),
			killer: killer{pkg: "./distributeddata", run: "TestMembership_AStoreThatMisbehavesBlocksNothing"},
		},
		{
			name:   "a function that occupies the replicator is not logged",
			rule:   "operators are told once of a function that blocks a replicator",
			edits:  in("distributeddata", "so >= blockedAfter && !b.logged.Swap(true)", "false"),
			killer: killer{pkg: "./distributeddata", run: "^TestHostile_AFunctionThatNeverReturns$"},
		},
		{
			name:   "a member whose replicator is blocked is ready",
			rule:   "/readyz names a function that blocks a replicator",
			edits:  in("distributeddata", "b, so := r.blocked(); so >= blockedAfter", "b, so := r.blocked(); so < 0"),
			killer: killer{pkg: "./distributeddata", run: "^TestHostile_AFunctionThatNeverReturns$"},
		},
	}
}
