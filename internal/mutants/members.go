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
