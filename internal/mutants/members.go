package main

// members are bugs of membership, and of the network in memory that everything is tested on.
func members() []mutant {
	const dir, pkg = "internal/membership/", "./internal/membership"
	const net, netPkg = "internal/simnet/", "./internal/simnet"
	return []mutant{
		{
			name:   "both of a pair ask how the other is",
			rule:   "a pair with which all is well exchanges two hellos in an interval",
			edits:  in(dir+"core_hello.go", "return c.self.ID > p.ID", "return c.self.ID == p.ID"),
			killer: killer{pkg: pkg, run: "^TestMembersThatAreWellExchangeTwoHellosPerPairAndInterval$"},
		},
		{
			name:   "greet every member as often in a large cluster",
			rule:   "a member at rest says no more than one hello in restGap, and an answer",
			edits:  in(dir+"core_hello.go", "every := max(c.idle, c.share())", "every := c.idle"),
			killer: killer{pkg: pkg, run: "^TestScale_AtRestAMemberSaysNoMoreInALargeCluster$"},
		},
		{
			name:   "greet all members of a large cluster at once",
			rule:   "pairs have a place of their own in the interval",
			edits:  in(dir+"core_hello.go", "at := now.Truncate(every).Add(time.Duration(mark(c.self.ID+p.ID) % uint64(every)))", "at := now.Add(every)"),
			killer: killer{pkg: pkg, run: "^TestScale_AtRestAMemberSaysNoMoreInALargeCluster$"},
		},
		{
			name:   "ask many lost addresses as often as one",
			rule:   "a member asks ten lost addresses a second at most, on average",
			edits:  in(dir+"core_lost.go", "max(l.gap, time.Duration(len(c.lost))*c.lostGap)", "l.gap"),
			killer: killer{pkg: pkg, run: "^TestScale_AMemberThatLostManyAsksTenASecond$"},
		},
		{
			name:   "have everybody ask everybody about a newcomer",
			rule:   "a join in progress is no reason to ask the whole view",
			edits:  in(dir+"core_split.go", "if !o.polled && (o.certain || now.Sub(o.since) >= c.patience) {", "if !o.polled {"),
			killer: killer{pkg: pkg, run: "^TestScale_ANewcomerCostsEachMemberAFewHellos$"},
		},
		{
			name:   "verdicts of one moment count twice",
			rule:   "a peer must disown this member twice, some time apart",
			edits:  in(dir+"core_hello.go", "\tcase p.against > 0 && now.Sub(p.againstAt) < c.verdictGap:\n", ""),
			killer: killer{pkg: pkg, run: "^TestCore_VerdictsOfOneMomentCountOnce$"},
		},
		{
			name:   "a former process of a member is taken for a new one",
			rule:   "an incarnation that has been replaced never comes back",
			edits:  in(dir+"core_hello.go", "\tcase slices.Contains(c.former, retired{p.ID, r.from}):\n\t\treturn whyStale, false\n", ""),
			killer: killer{pkg: pkg, run: "^TestCore_WhatIsDropped$"},
		},
		{
			name:   "a newcomer with a lagging clock is the oldest",
			rule:   "a stamp is above every stamp that was heard of",
			edits:  in(dir+"core_hello.go", "c.stamp = max(stampAt(now), c.maxStamp+1)", "c.stamp = stampAt(now)"),
			killer: killer{pkg: pkg, run: "^TestCore_StampIsAboveAllHeardOf$"},
		},
		{
			name:   "a member gives way as soon as it has asked",
			rule:   "nobody gives way without a permit",
			edits:  in(dir+"core_permit.go", "\tc.emit(send{first.address, first.incarnation, h})", "\tc.emit(send{first.address, first.incarnation, h})\n\tc.remove(ErrGaveWay)"),
			killer: killer{pkg: pkg, run: "^TestSimulation_SplitsHeal$", args: "-whole"},
		},
		{
			name:   "any permit will do",
			rule:   "a permit answers a request of the last moments",
			edits:  in(dir+"core_permit.go", "valid && conflict &&", "(valid || true) && conflict &&"),
			killer: killer{pkg: pkg, run: "^TestSplit_APermitMustAnswerARequestOfThisMoment$"},
		},
		{
			name:   "permits without bound",
			rule:   "at most a quarter of a fragment is waited for at once",
			edits:  in(dir+"core_permit.go", "len(c.permits) >= most:", "len(c.permits) >= 1000*most:"),
			killer: killer{pkg: pkg, run: "^TestSimulation_SplitsHeal$", args: "-whole"},
		},
		{
			name: "who gave a permit goes as well",
			rule: "who gave a permit stays until the other is back",
			edits: []edit{
				{dir + "core_permit.go", "if c.leaving || len(c.permits) > 0 {", "if c.leaving {"},
				{dir + "core_permit.go", "!c.leaving && len(c.permits) == 0 &&", "!c.leaving &&"},
			},
			killer: killer{pkg: pkg, run: "^TestSimulation_SplitsHeal$", args: "-whole"},
		},
		{
			name:   "who asks for a permit gives one",
			rule:   "a member that may go promises nobody to stay",
			edits:  in(dir+"core_permit.go", "case c.leaving || len(c.requests) > 0 ||", "case c.leaving ||"),
			killer: killer{pkg: pkg, run: "^TestSplit_NoPermitFromAMemberThatMayGo$"},
		},
		{
			name:   "size counts members that deny us",
			rule:   "the size of a fragment is mutual",
			edits:  in(dir+"core_split.go", "case denies:", "case denies && false:"),
			killer: killer{pkg: pkg, run: "^TestOneThatIsDroppedByOthers$"},
		},
		{
			name:   "the smaller fragment stays",
			rule:   "the larger fragment stays",
			edits:  in(dir+"core_split.go", "cmp.Compare(o.size, r.size)", "cmp.Compare(r.size, o.size)"),
			killer: killer{pkg: pkg, run: "^TestSimulation_OneSplitCostsTheLosersALife$", args: "-whole"},
		},
		{
			name:   "lost members are not asked",
			rule:   "both sides of a split hear of each other",
			edits:  in(dir+"core_lost.go", "\tif len(c.lost) == 0 {", "\tif true {"),
			killer: killer{pkg: pkg, run: "^TestSplit_Heals$"},
		},
		{
			name:   "who says good-bye is asked for",
			rule:   "a member that left in order is not asked for",
			edits:  in(dir+"core.go", "if !p.left && !c.lists(p.Address) {", "if !c.lists(p.Address) {"),
			killer: killer{pkg: pkg, run: "^TestLost_WhoIsListedAgainOrHasLeftIsNotAsked$"},
		},
		{
			name:   "a hello alone is evidence",
			rule:   "evidence takes a round trip",
			edits:  in(dir+"core_split.go", "if r.to != c.incarnation || h.size == 0 && !listed {", "if h.size == 0 && !listed {"),
			killer: killer{pkg: pkg, run: "^TestSplit_OnlyWhoHasHeardFromUsIsEvidence$"},
		},
		{
			name:   "a join in progress is a split",
			rule:   "evidence that may be a join takes long patience",
			edits:  in(dir+"core_split.go", "return c.joinPatience", "return c.patience"),
			killer: killer{pkg: pkg, run: "^TestSimulation_NoSplitNoLifeEnds$", args: "-whole"},
		},
		{
			name:   "expelled without a permit",
			rule:   "in a ring of members that disown each other not all go",
			edits:  in(dir+"core_hello.go", "if c.disowned && !speak {", "if c.disowned {"),
			killer: killer{pkg: pkg, run: "^TestSplit_WhoIsExpelledNeedsAPermitFromMembersThatKnowThem$"},
		},
		{
			name:   "who was paused believes its old view",
			rule:   "before anybody goes, all are asked whom they list",
			edits:  in(dir+"core_split.go", "\t\tc.poll(now)\n", ""),
			killer: killer{pkg: pkg, run: "^TestSeededHistories$"},
		},
		{
			name:   "a stamp is told to lost members, then withdrawn",
			rule:   "a stamp that was told is final",
			edits:  in(dir+"core_hello.go", "if !lists && c.mayWithdraw(c.now) {", "if false {"),
			killer: killer{pkg: pkg, run: "^TestCore_AStampThatMayBeWithdrawnIsNotToldToLostMembers$"},
		},
		{
			name:   "virtual systems run actors their own way",
			rule:   "props keep their dispatcher",
			edits:  in(net+"workers.go", "if !dispatched(props) {", "if true {"),
			killer: killer{pkg: netPkg, run: "^TestWorkers_PropsKeepTheirDispatcher$"},
		},
		{
			name:   "what is on its way passes a cut",
			rule:   "a cut link loses what would arrive",
			edits:  in(net+"link.go", "if !cut && !l.net.waitAtDoor", "if !l.net.waitAtDoor"),
			killer: killer{pkg: netPkg, run: "^TestWhatIsOnItsWayIsLostAtACutAndReachesTheNextProcess$"},
		},
	}
}
