package main

// expiries are the bugs of entries that expire, and of what is measured of them and of updates.
func expiries() []mutant {
	const (
		pkg  = "./distributeddata"
		core = "./distributeddata/internal/expiry"
	)
	simulation := killer{pkg: core, run: "^TestSimulation$"}
	uses := killer{pkg: pkg, run: "^TestExpiry_UseAtOneMemberKeepsItEverywhere$"}
	return []mutant{
		{
			name:   "a stamp does not cover uses up to a quarter of the time to live later",
			rule:   "an entry does not expire within its time to live after a use",
			edits:  in("distributeddata", "return ttl + ttl/4 + skew", "return ttl + skew"),
			killer: simulation,
		},
		{
			name:   "the table assumes that all clocks are equal",
			rule:   "an entry does not expire within its time to live after a use",
			edits:  in("distributeddata", "return ttl + ttl/4 + skew", "return ttl + ttl/4"),
			killer: killer{pkg: core, run: "^TestTable_ExpiresAfterItsTimeAQuarterAndTheSkew$"},
		},
		{
			name:   "a stamp of the future keeps an entry forever",
			rule:   "a stamp keeps an entry no longer than a use at the current time does",
			edits:  in("distributeddata", "min(use, now)+lasts", "use+lasts"),
			killer: simulation,
		},
		{
			name:   "a stamp of the future hides valid stamps below it",
			rule:   "an entry does not expire within its time to live after a use",
			edits:  in("distributeddata", " && use <= now+t.cfg.Skew {", " {"),
			killer: killer{pkg: core, run: "^TestTable_StampOfTheFutureHidesNoUse$"},
		},
		{
			name:   "a use does not replace a stamp of the future",
			rule:   "an entry does not expire within its time to live after a use",
			edits:  in("distributeddata", "if u.At > now+skew {", "if u.At < 0 {"),
			killer: simulation,
		},
		{
			name:   "all members delete an entry at once",
			rule:   "one member deletes an entry, the next one a turn later",
			edits:  in("distributeddata", "\t\t\tbefore++\n", ""),
			killer: killer{pkg: core, run: "^TestTable_MembersTakeTurns$"},
		},
		{
			name:   "no other member takes over a deletion",
			rule:   "one member deletes an entry, the next one a turn later",
			edits:  in("distributeddata", "\treturn before\n", "\treturn 1000 * before\n"),
			killer: killer{pkg: pkg, run: "^TestExpiry_TheNextMemberTakesOver$"},
		},
		{
			name:   "a new view does not change the turns",
			rule:   "one member deletes an entry, the next one a turn later",
			edits:  in("distributeddata", "\t\t\tit.turns = t.rank(it.key)\n\t\t\tt.moved(it.pos)\n", ""),
			killer: killer{pkg: core, run: "^TestTable_ViewChangesTurns$"},
		},
		{
			name:   "half of the members delete entries that the other half uses",
			rule:   "a member deletes only while it sees more than half of the counted members",
			edits:  in("distributeddata", "2*len(quorum.Missing()) < quorum.Counted", "quorum.Counted > 0"),
			killer: killer{pkg: pkg, run: "^TestExpiry_HalfOfTheMembersDeleteNothing$"},
		},
		{
			name:   "an entry without a stamp is deleted when it is seen",
			rule:   "an entry without a stamp counts as used when it is seen",
			edits:  in("distributeddata", "case x.Use == 0:", "case x.Use < 0:"),
			killer: killer{pkg: pkg, run: "^TestExpiry_EntriesWithoutAStampCountAsUsedWhenSeen$"},
		},
		{
			name:   "a read does not count as a use",
			rule:   "a use at one member keeps an entry at every member",
			edits:  in("distributeddata", "l.ttls.now() >= renewAt &&", "l.ttls.now() < renewAt &&"),
			killer: uses,
		},
		{
			name:   "every use is announced",
			rule:   "a use is announced at most four times per time to live",
			edits:  in("distributeddata", "return u.At + max(ttl/4, 1)", "return u.At"),
			killer: uses,
		},
		{
			name:   "subscribers are notified of uses",
			rule:   "a use does not change the value",
			edits:  in("distributeddata", " || t.use.At+o.use.At != 0 && t.store.EqualValue(o.store)", ""),
			killer: killer{pkg: pkg, run: "^TestExpiry_WatchingIsNoUse$"},
		},
		{
			name:   "every deletion is reported as an expiry",
			rule:   "Expired reports an entry that was not used for its time to live",
			edits:  in("distributeddata", "return u.At > 0 && ttl > 0 && now >= u.At+ttl+ttl/4", "return u.At > 0 && ttl > 0 && now > 0"),
			killer: killer{pkg: pkg, run: "^TestExpiry_IsToldApart$"},
		},
		{
			name:   "a value contains the stamp of its entry",
			rule:   "types do not see that entries expire",
			edits:  in("distributeddata", "\t\treturn s.Drop(causal.UsePath)\n", "\t\treturn s\n"),
			killer: killer{pkg: pkg, run: "^TestExpiry_TypesDoNotSeeIt$"},
		},
		{
			name:   "the earlier of two times to live counts",
			rule:   "of two times to live, the one set later counts",
			edits:  in("distributeddata", "if o.Set > u.Set ||", "if o.Set < u.Set ||"),
			killer: killer{pkg: core, run: "^TestUse_RoundTripAndMerge$"},
		},
		{
			name:   "a member that is not ready deletes entries",
			rule:   "a member deletes only when it has been refilled",
			edits:  in("distributeddata", "return d.core.Ready() && quorum != nil", "return quorum != nil"),
			killer: killer{pkg: pkg, run: "^TestExpiry_AMemberThatIsNotReadyDeletesNothing$"},
		},
		{
			name:   "a deletion does not look at the entry again",
			rule:   "an update that races with the deletion leaves no half-expired value",
			edits:  in("distributeddata", "u.At != x.Use || e.a.l.ttls.of(x.Key, u) != x.TTL", "u.At < 0"),
			killer: killer{pkg: pkg, run: "^TestExpiry_AnUpdateThatIsNotVisibleYetKeepsTheEntry$"},
		},
		{
			name:   "different times to live are reported with every heartbeat",
			rule:   "a member with different times to live is named once",
			edits:  in("distributeddata", "is != was {", "is || is != was {"),
			killer: killer{pkg: "./distributeddata/internal/core", run: "^TestExpiry_DifferentTimesAreNamedOnce$"},
		},
		{
			name:   "different times to live are not asked for",
			rule:   "a member with different times to live is named, whatever was lost",
			edits:  in("distributeddata", "if !p.dated && h.cfg.Expiry != 0 {", "if false {"),
			killer: killer{pkg: "./distributeddata/internal/core", run: "^TestExpiry_DifferentTimesAreNamedOnce$"},
		},
		{
			name:   "every heartbeat tells the times to live",
			rule:   "expiry adds nothing to the traffic at rest",
			edits:  in("distributeddata", "if m.Seen != nil { // others", "if true { // others"),
			killer: killer{pkg: "./distributeddata/internal/core", run: "^TestExpiry_TakesNoBytesAtRest$"},
		},
		{
			name:   "the convergence of all members is that of a majority",
			rule:   "convergence at level all waits for every counted member",
			edits:  in("distributeddata", "Level: followed[i].level()", "Level: Majority.level()"),
			killer: killer{pkg: pkg, run: "^TestMetrics_Convergence$"},
		},
	}
}
