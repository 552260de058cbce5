package main

// members are bugs of membership, and of the in-memory network used by all tests.
func members() []mutant {
	const pkg = "./internal/membership"
	const netPkg = "./internal/simnet"
	return []mutant{
		{
			name:   "a member that restarts at once is not reported",
			rule:   "a member that ends without leaving is reported",
			edits:  in("internal", "c.emit(replaced{p.Address})", "c.lost.add(now, p.Address, p.pledge, false)"),
			killer: killer{pkg: pkg, run: "^TestReplaced_OnlyWithoutAGoodBye$"},
		},
		{
			name:   "a member that is away for a moment is not reported",
			rule:   "a member that ends without leaving is reported",
			edits:  in("internal", "c.emit(replaced{l.address})", "back = true"),
			killer: killer{pkg: "./node", run: "^TestWatch_AMemberReplacedAtItsAddress$"},
		},
		{
			name:   "a dropped member that is back is reported a second time",
			rule:   "each fault is logged in one line",
			edits:  in("node", "return slices.Contains(back, address)", "return false"),
			killer: killer{pkg: "./node", run: "^TestWatch_AMemberReplacedAtItsAddress$"},
		},
		{
			name:   "each member that restarts in order is logged as a fault",
			rule:   "a member that leaves first is not replaced",
			edits:  in("internal", "case p.left:", "case p.left && !c.roster.lists(p.Address):"),
			killer: killer{pkg: pkg, run: "^TestReplaced_OnlyWithoutAGoodBye$"},
		},
		{
			name:   "a replaced member is logged again and again",
			rule:   "each fault is logged in one line",
			edits:  in("internal", "\ts.mu.replaced = nil\n", ""),
			killer: killer{pkg: "./node", run: "^TestWatch_AMemberReplacedAtItsAddress$"},
		},
		{
			name:   "both members of a pair ask",
			rule:   "a healthy pair exchanges two hellos per interval",
			edits:  in("internal", "return c.self.ID > p.ID", "return c.self.ID == p.ID"),
			killer: killer{pkg: pkg, run: "^TestHellos_TwoPerPairAndInterval$"},
		},
		{
			name:   "greet every member equally often in a large cluster",
			rule:   "an idle member sends at most one hello and one answer per restGap",
			edits:  in("internal", "every := max(c.idle, c.share())", "every := c.idle"),
			killer: killer{pkg: pkg, run: "^TestScale_AtRestAMemberSaysNoMoreInALargeCluster$"},
		},
		{
			name:   "greet all members of a large cluster at once",
			rule:   "the hellos of different pairs are spread over the interval",
			edits:  in("internal", "at := now.Truncate(every).Add(time.Duration(mark(c.self.ID+p.ID) % uint64(every)))", "at := now.Add(every)"),
			killer: killer{pkg: pkg, run: "^TestScale_AtRestAMemberSaysNoMoreInALargeCluster$"},
		},
		{
			name:   "ask many lost addresses as often as one",
			rule:   "a member asks on average at most ten lost addresses per second",
			edits:  in("internal", "max(l.gap, time.Duration(len(x.all))*x.lostGap)", "l.gap"),
			killer: killer{pkg: pkg, run: "^TestScale_AMemberThatLostManyAsksTenASecond$"},
		},
		{
			name:   "let every member ask every other member about a new member",
			rule:   "a join in progress does not cause a member to ask the whole view",
			edits:  in("internal", "if !o.polled && (o.certain || now.Sub(o.since) >= c.patience) {", "if !o.polled {"),
			killer: killer{pkg: pkg, run: "^TestScale_ANewMemberCostsEachMemberAFewHellos$"},
		},
		{
			name:   "count members that have not said that they list this one",
			rule:   "in a conflict a fragment contains the members that have confirmed it since the poll",
			edits:  in("internal", "return len(c.conflicts.by) == 0 || !p.agreed.Before(c.conflicts.polledAt)", "return true"),
			killer: killer{pkg: pkg, run: "^TestSplit_AMemberWakingBehindALateLinkStepsDown$"},
		},
		{
			name:   "forget members dropped before this one was listed",
			rule:   "a member dropped by the provider before this one is up counts as dropped",
			edits:  in("internal", "c.early = members", "c.early = nil"),
			killer: killer{pkg: pkg, run: "^TestSplit_AMemberDroppedBeforeWeAreListedIsDropped$"},
		},
		{
			name:   "verdicts of one moment count twice",
			rule:   "a peer must disown this member twice, some time apart",
			edits:  in("internal", "\tcase p.against > 0 && now.Sub(p.againstAt) < c.verdictGap:\n", ""),
			killer: killer{pkg: pkg, run: "^TestCore_VerdictsOfOneMomentCountOnce$"},
		},
		{
			name:   "a former process of a member counts as a new one",
			rule:   "a replaced incarnation never comes back",
			edits:  in("internal", "\tcase slices.Contains(c.roster.former, retired{p.ID, r.from}):\n\t\treturn whyStale, false\n", ""),
			killer: killer{pkg: pkg, run: "^TestCore_WhatIsDropped$"},
		},
		{
			name:   "a new member with a lagging clock is the oldest",
			rule:   "a stamp is larger than every stamp heard before",
			edits:  in("internal", "c.stamp = max(stampAt(now), c.maxStamp+1)", "c.stamp = stampAt(now)"),
			killer: killer{pkg: pkg, run: "^TestCore_StampIsAboveAllHeardOf$"},
		},
		{
			name:   "a member steps down as soon as it has asked",
			rule:   "a member steps down only with a permit",
			edits:  in("internal", "\tc.emit(send{first.address, first.incarnation, h})", "\tc.emit(send{first.address, first.incarnation, h})\n\tc.remove(ErrSteppedDown)"),
			killer: killer{pkg: pkg, run: "^TestSimulation_SplitsHeal$", args: "-whole"},
		},
		{
			name:   "any permit is accepted",
			rule:   "a permit is valid only if it answers a recent request",
			edits:  in("internal", "c.permits.asked(now, r) && conflict &&", "conflict &&"),
			killer: killer{pkg: pkg, run: "^TestSplit_APermitMustAnswerARequestOfThisMoment$"},
		},
		{
			name:   "a member gives permits without a bound",
			rule:   "at least half of the members stay while others rejoin",
			edits:  in("internal", "len(c.permits.given) >= c.most():", "len(c.permits.given) >= 1000*c.most():"),
			killer: killer{pkg: pkg, run: "^TestSimulation_SplitsHeal$", args: "-whole"},
		},
		{
			name: "a member that gave a permit steps down as well",
			rule: "a member that gave a permit stays until the other member is back",
			edits: []edit{
				{"internal", "if c.leaving || len(c.permits.given) > 0 {", "if c.leaving {"},
				{"internal", "!c.leaving && len(c.permits.given) == 0 &&", "!c.leaving &&"},
			},
			killer: killer{pkg: pkg, run: "^TestSimulation_SplitsHeal$", args: "-whole"},
		},
		{
			name:   "a member that requests a permit gives one",
			rule:   "a member that may step down does not promise to stay",
			edits:  in("internal", "case c.leaving || c.permits.asking() ||", "case c.leaving ||"),
			killer: killer{pkg: pkg, run: "^TestSplit_NoPermitFromAMemberThatMayGo$"},
		},
		{
			name:   "the size of a fragment includes members that deny this one",
			rule:   "the size of a fragment counts only members that list each other",
			edits:  in("internal", "case denies:", "case denies && false:"),
			killer: killer{pkg: pkg, run: "^TestOneThatIsDroppedByOthers$"},
		},
		{
			name:   "the smaller fragment stays",
			rule:   "the larger fragment stays",
			edits:  in("internal", "cmp.Compare(o.size, r.size)", "cmp.Compare(r.size, o.size)"),
			killer: killer{pkg: pkg, run: "^TestSimulation_OneSplitCostsLosersOneIncarnation$", args: "-whole"},
		},
		{
			name:   "lost members are not asked",
			rule:   "both sides of a split hear of each other",
			edits:  in("internal", "\tc.lost.expire(now)\n", "\treturn\n"),
			killer: killer{pkg: pkg, run: "^TestSplit_Heals$"},
		},
		{
			name:   "a member that left in order is asked for",
			rule:   "a member does not ask for members that left in order",
			edits:  in("internal", "case p.left:", "case p.left && c.roster.lists(p.Address):"),
			killer: killer{pkg: pkg, run: "^TestLost_WhoIsListedAgainOrHasLeftIsNotAsked$"},
		},
		{
			name:   "a single hello is evidence of a split",
			rule:   "evidence of a split needs a round trip",
			edits:  in("internal", "if r.to != c.incarnation || h.size == 0 && !listed {", "if h.size == 0 && !listed {"),
			killer: killer{pkg: pkg, run: "^TestSplit_OnlyWhoHasHeardFromUsIsEvidence$"},
		},
		{
			name:   "a join in progress counts as a split",
			rule:   "evidence that may come from a join needs the longer patience",
			edits:  in("internal", "return x.joinPatience", "return x.patience"),
			killer: killer{pkg: pkg, run: "^TestSimulation_WithoutASplitNobodyRejoins$", args: "-whole"},
		},
		{
			name:   "a member is expelled without a permit",
			rule:   "in a ring of members that disown each other, at least one stays",
			edits:  in("internal", "if c.disowned && !speak {", "if c.disowned {"),
			killer: killer{pkg: pkg, run: "^TestSplit_PermissionComesFromMembersThatKnowIt$"},
		},
		{
			name:   "a member that was paused trusts its old view",
			rule:   "before a member steps down, it asks all members which members they list",
			edits:  in("internal", "\t\tc.poll(now)\n", ""),
			killer: killer{pkg: pkg, run: "^TestSeededHistories$"},
		},
		{
			name:   "a member tells lost members its stamp and then withdraws it",
			rule:   "a stamp that was sent is final",
			edits:  in("internal", "if !lists && c.mayWithdraw(c.now) {", "if false {"),
			killer: killer{pkg: pkg, run: "^TestCore_WithdrawableStampIsHiddenFromLostMembers$"},
		},
		{
			name:   "a virtual system replaces the dispatcher of an actor",
			rule:   "props keep their dispatcher",
			edits:  in("internal", "if !dispatched(props) {", "if true {"),
			killer: killer{pkg: netPkg, run: "^TestWorkers_PropsKeepTheirDispatcher$"},
		},
		{
			name:   "messages in transit pass a cut link",
			rule:   "a cut link drops messages in transit",
			edits:  in("internal", "if !cut && !l.net.waitAtDoor", "if !l.net.waitAtDoor"),
			killer: killer{pkg: netPkg, run: "^TestInFlight_LostAtACutAndReachesTheNextProcess$"},
		},
	}
}
