package main

const (
	shardCore = "./sharding/internal/core"
)

var (
	plannedMoves = killer{pkg: shardCore, run: "^TestSimulation_PlannedMovesLoseNothing$", args: "-whole"}
	remembers    = killer{pkg: shardCore, run: "^TestSimulation_Remembers$", args: "-whole"}
	delivers     = killer{pkg: shardCore, run: "^TestSimulation_Delivers$", args: "-whole"}
	shardChaos   = killer{pkg: shardCore, run: "^TestSimulation_NeverTwoAlive$", args: "-whole"}
)

// shards are bugs of regions and of the coordinator that assigns shards to them. The rules in
// brackets are those of the comment of package core.
func shards() []mutant {
	return []mutant{
		{
			name:   "messages that wait for a store that fails hold up the move",
			rule:   "a shard that moves since the store fails does not wait for the store [S41]",
			edits:  in("sharding", "case e.state == unknown && storeFails:", "case e.state == unknown && storeFails && s.stoppedNow:"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_AMemberThatDoesNotReachItLosesItsShards$"},
		},
		{
			name:   "an entity that is stored again counts as remembered",
			rule:   "an entity handles nothing before it is remembered [S16]",
			edits:  in("sharding", "\t\tcase c.again:\n\t\t\tadd = append(add, c.id)\n", "\t\tcase false:\n"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_AnEntityForgottenWhileItIsStoredAgain$"},
		},
		{
			name:   "a region whose store of remembered entities fails keeps its shards",
			rule:   "a member that does not reach the store of remembered entities gives its shards to others [S41]",
			edits:  in("sharding", "case b.Open(now):", "case false:"),
			killer: remembers,
		},
		{
			name:   "a member is not given shards again once its store has failed",
			rule:   "a region is tried again after a time [S41]",
			edits:  in("sharding", "b.opened > 0 && now.Before(b.last.Add(b.wait()))", "b.opened > 0"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_AMemberThatDoesNotReachItLosesItsShards$"},
		},
		{
			name:   "the wait for another trial stays the same",
			rule:   "the wait doubles with each trial that fails [S41]",
			edits:  in("sharding", "b.cfg.Wait<<min(b.opened-1, 16)", "b.cfg.Wait"),
			killer: killer{pkg: shardCore, run: "^TestBreaker_TheWaitDoublesWhileNoCallSucceeds$"},
		},
		{
			name:   "all shards move to members that may not reach the store either",
			rule:   "shards move to members where a call has succeeded; each other one is given one shard [S41]",
			edits:  in("sharding", "takers = c.takers(fit)", "takers = fit"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_AnOutageForAllMovesNoShard$"},
		},
		{
			name:   "shards move for balance while the store fails for all",
			rule:   "no shard moves by choice while a member fails [S27]",
			edits:  in("sharding", "{ return !c.fit(m, false) }", "{ return !slices.Contains(fit, m) }"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_AnOutageForAllMovesNoShard$"},
		},
		{
			name:   "a member on trial is given many shards",
			rule:   "a member on trial is given one shard [S41]",
			edits:  in("sharding", "takers := slices.DeleteFunc(slices.Clone(fit), c.onTrial)", "takers := slices.Clone(fit)"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_AMemberThatDoesNotReachItLosesItsShards$"},
		},
		{
			name:   "a shard that cannot be read opens the circuit breaker",
			rule:   "calls for another shard decide [S41]",
			edits:  in("sharding", "!l.breaker.core.Failed(n) && s", "false && s"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_ADamagedShardMovesNone$"},
		},
		{
			name:   "a region that leaves waits for a coordinator until its time is over",
			rule:   "a region that leaves gives up its shards when no coordinator moves them [S9c]",
			edits:  in("sharding", "case r.leaving: // nobody", "case r.leaving && r.removed: // nobody"),
			killer: killer{pkg: shardCore, run: "^TestRegion_LeavesWithoutACoordinator$"},
		},
		{
			name:   "a region that gave up its shards takes them again before it ends",
			rule:   "a region that leaves takes no shard again [S9c]",
			edits:  in("sharding", "orphan, over := r.orphan && r.leaving,", "orphan, over := false,"),
			killer: killer{pkg: shardCore, run: "^TestRegion_LeavesWithoutACoordinator$"},
		},
		{
			name:   "the sessions of former holders are observed when shards are assigned",
			rule:   "after a crash of all members, entities wait for one TTL",
			edits:  in("sharding", "if c.view == nil && c.leases != nil {", "if c.leases == nil {"),
			killer: killer{pkg: "./sharding", run: "^TestCrash_OfAllMembersCostsOneTTL$"},
		},
		{
			name:   "a silent member is said to have hosted nothing",
			rule:   "the line of dropped members says what they hosted",
			edits:  in("sharding", "s := r.shards[n]; s.last != 0", "s := r.shards[n]; s.last != 0 && r.removed"),
			killer: killer{pkg: "./sharding", run: "^TestHosted_ByAMemberThatWasSilentBefore$"},
		},
		{
			name:   "a process that starts replaces what the one before it hosted",
			rule:   "what a member hosted is counted once, when it goes",
			edits:  in("sharding", "m.Incarnation != 0 && (!ok", "(!ok"),
			killer: killer{pkg: "./sharding", run: "^TestHosted_ByAMemberThatWasSilentBefore$"},
		},
		{
			name:   "entities start when the shard is assigned, before the lease is held",
			rule:   "entities run only under a tenure that is held [S1]",
			edits:  in("sharding", "\ts.blank = Blank{}\n}\n\n// onHeld", "\ts.blank = Blank{}\n\ts.token++\n\ts.activate()\n}\n\n// onHeld"),
			killer: plannedMoves,
		},
		{
			name:   "a member that starts waits for a majority of the replicas",
			rule:   "entities need no majority where the settings of the type are known",
			edits:  in("sharding", "|| !l.joins(ctx)", "|| true"),
			killer: killer{pkg: "./sharding", run: "^TestStart_WithoutAMajorityOfTheReplicas$"},
		},
		{
			name:   "grains are looked up beside another lookup",
			rule:   "while a member finds the same kinds by another lookup, no grain is looked up",
			edits:  in("sharding", "if len(r.found) == 0 {", "if true {"),
			killer: killer{pkg: "./sharding/grains", run: "^TestLookup_RefusesToShareKindsWithAnother$"},
		},
		{
			name:   "on a loss, entities are asked to stop",
			rule:   "on a loss, entities are killed before validity ends [S2b]",
			edits:  in("sharding", "\ts.stopNow()\n}\n\n// onEnded", "\ts.r.emit(Stop{s.n, s.token})\n}\n\n// onEnded"),
			killer: shardChaos,
		},
		{
			name: "a coordinator takes a list of active shards for the present one",
			rule: "a sum stands for the list with this sum only [S8c]",
			edits: []edit{
				{"sharding", "\tif rep.Held != t.Held {", "\tif t.Held == 0 {"},
				{"sharding", "\tcase known.Held != r.Held:", "\tcase false:"},
			},
			killer: plannedMoves,
		},
		{
			name:   "the lease is released when entities are told to stop",
			rule:   "a lease is released when every entity has terminated [S3]",
			edits:  in("sharding", "\ts.r.emit(Stop{s.n, s.token})\n}", "\ts.r.emit(Stop{s.n, s.token})\n\ts.r.emit(Release{s.n, s.token})\n}"),
			killer: plannedMoves,
		},
		{
			name:   "the next home is notified before the release is confirmed",
			rule:   "a shard is announced as free when its release is certain [S4]",
			edits:  in("sharding", "\t\ts.r.emit(Release{s.n, s.token})\n\t}\n}\n\nfunc (s *shard) onReleased", "\t\ts.r.emit(Release{s.n, s.token})\n\t\ta := s.r.table.entries[s.n]\n\t\ts.r.tell(a.Home, Free{s.n, a.Version, Blank{}})\n\t}\n}\n\nfunc (s *shard) onReleased"),
			killer: plannedMoves,
		},
		{
			name:   "a region that waits for a lease keeps waiting after the shard was reassigned",
			rule:   "a region that waits for a lease can be reassigned [S4b]",
			edits:  in("sharding", "\tcase Waiting:\n\t\tif !s.assigned() {", "\tcase Waiting:\n\t\tif false {"),
			killer: shardChaos,
		},
		{
			name: "a region without a tenure does not answer whether the shard is free",
			rule: "a region without a tenure says so when asked [S4c]",
			edits: []edit{
				{"sharding", "\tif s.phase == Away {\n\t\ts.r.tell(from,", "\tif false {\n\t\ts.r.tell(from,"},
				{"sharding", "|| !s.r.now.Before(s.since.Add(s.r.cfg.Patience)) {", "{"},
			},
			killer: shardChaos,
		},
		{
			name: "a grant that arrives too late is kept",
			rule: "a grant that is no longer wanted is released [S5]",
			edits: []edit{
				{"sharding", "\t\t\ts.enter(Releasing) // until the attempt has ended", "\t\t\ts.gone(Blank{})"},
				{"sharding", "\tcase ev.Token != s.token:\n", "\tcase false:\n"},
			},
			killer: killer{pkg: shardCore, run: "^TestShard_GivesBackAGrantThatIsNotWantedAnyMore$"},
		},
		{
			name: "new assignments are sent once",
			rule: "assignments are repeated until they are heard [S6]",
			edits: []edit{
				{"sharding", "\t\tcase r.Sum != t.Sum:\n", "\t\tcase false:\n"},
				{"sharding", "|| r.Sum != t.Sum && (r.N < c.full || r.N > c.n):", ":"},
			},
			killer: shardChaos,
		},
		{
			name: "the latest message counts, not the largest version",
			rule: "of two assignments, the larger version counts [S6b]",
			edits: []edit{
				{"sharding", "if !was.Version.Less(e.Version) {", "if was.Version == e.Version {"},
				{"sharding", "\tif t.Epoch < r.epoch {\n\t\treturn", "\tif false {\n\t\treturn"},
			},
			killer: shardChaos,
		},
		{
			name:   "a late table of an earlier coordinator is not sent to regions that agreed before",
			rule:   "assignments are repeated until they are heard [S6c]",
			edits:  in("sharding", "|| r.Sum != t.Sum && (r.N < c.full || r.N > c.n):", ":"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_TellsWhatCameLateToThoseThatAgreed$"},
		},
		{
			name: "a new coordinator assigns before the regions have reported",
			rule: "a coordinator first listens, then decides [S7]",
			edits: []edit{
				{"sharding", "\tif c.settled {\n", "\tc.settled = true\n\t{\n"},
				{"sharding", "c.missing(m) && c.now.Before(c.begun.Add(c.cfg.Fit))", "false"},
			},
			killer: killer{pkg: shardCore, run: "^TestAllocation_ListensBeforeItDecides$"},
		},
		{
			name:   "a new coordinator takes shards from a home that it has not heard yet",
			rule:   "a home in view that has not reported yet keeps its shards as long as one that has [S7b]",
			edits:  in("sharding", "c.missing(m) && c.now.Before(c.begun.Add(c.cfg.Fit))", "false"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_UnheardHomeKeepsItsShards$"},
		},
		{
			name:   "a region that does not hear the coordinator remains a host",
			rule:   "a member is fit if it hears the coordinator [S8]",
			edits:  in("sharding", "!c.now.After(r.heard.Add(c.cfg.Fit)) &&\n\t\t", ""),
			killer: shardChaos,
		},
		{
			name:   "a coordinator takes shards from a home that it has heard within Fit",
			rule:   "a member is fit for Fit after a report that names the epoch [S8]",
			edits:  in("sharding", "!c.now.After(r.heard.Add(c.cfg.Fit)) &&\n\t\t", "!c.now.After(r.heard.Add(c.cfg.Fit/2)) && "),
			killer: killer{pkg: shardCore, run: "^TestSimulation_OfFiveMembers$", args: "-whole"},
		},
		{
			name:   "shards move for balance while versions differ",
			rule:   "while versions differ, shards move only to homes that users have named [S27b]",
			edits:  in("sharding", "case c.cfg.Consult, len(c.newest) > 0:", "case c.cfg.Consult:"),
			killer: killer{pkg: "./sharding", run: "^TestRollingUpdate_MovesEachShardAtMostTwice$"},
		},
		{
			name:   "a shard whose home leaves goes to any member while versions differ",
			rule:   "a shard whose home leaves goes to a member of the newest version [S27b]",
			edits:  in("sharding", "if len(newest) > 0 {", "if false {"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_PrefersTheNewestVersion$"},
		},
		{
			name:   "a report counts although a later one has arrived",
			rule:   "a report that a later one has overtaken does not count [S8b]",
			edits:  in("sharding", "(r.Beat <= c.reports[i].Beat || r.Beat > c.beats)", "r.Beat > c.beats"),
			killer: killer{pkg: shardCore, run: "^TestSavedMoves$/a_report_overtaken"},
		},
		{
			name:   "a report from before a member returned into view counts",
			rule:   "a report that a later one has overtaken does not count [S8b]",
			edits:  in("sharding", "report{from: m, Report: Report{Beat: c.beats}}", "report{from: m}"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_ReportBeforeTheReturnIsIgnored$"},
		},
		{
			name:   "a region answers with the number of each table, not the largest",
			rule:   "a report is numbered by the latest table that its region has heard [S8b]",
			edits:  in("sharding", "r.beat = max(r.beat, t.Beat)", "r.beat = t.Beat"),
			killer: killer{pkg: shardCore, run: "^TestRegion_ReportsTheLargestBeat$"},
		},
		{
			name:   "a coordinator that is made again under its tenure counts from zero",
			rule:   "of two assignments, the larger version counts [S6b]",
			edits:  in("sharding", "if before != nil && before.epoch == epoch {", "if false {"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_GoesOnCountingUnderATenure$"},
		},
		{
			name:   "a region that agrees with the coordinator does not answer it",
			rule:   "a region answers each table of the newest coordinator [S6]",
			edits:  in("sharding", "	r.report(from, t)\n}", "	if len(t.Entries) > 0 {\n		r.report(from, t)\n	}\n}"),
			killer: shardChaos,
		},
		{
			name:   "a region cut off from the coordinator keeps its shards",
			rule:   "a region cut off from the coordinator gives up its shards [S9]",
			edits:  in("sharding", "if r.active == 0 || r.orphan", "if r.active >= 0 || r.orphan"),
			killer: shardChaos,
		},
		{
			name:   "a region without a coordinator gives up its shards without a check",
			rule:   "without another coordinator, a region keeps its shards [S9b]",
			edits:  in("sharding", "if ev.Other && !r.orphaned()", "if !r.orphaned()"),
			killer: shardChaos,
		},
		{
			name:   "a look at the coordinator's lease does not survive a panic of the store",
			rule:   "a look that fails concludes nothing [S9b]",
			edits:  in("sharding", "_, err = guarded(func() (h coordination.Holder, _ error) {\n\t\t\t\treturn h, leases.Held.Renewed(ctx, lease)\n\t\t\t})", "err = leases.Held.Renewed(ctx, lease)"),
			killer: killer{pkg: "./sharding", run: "^TestOrphan_AStoreThatFailsItsLookTakesNoShard$"},
		},
		{
			name:   "a region cut off from the coordinator waits for a whole TTL",
			rule:   "it gives its shards up once the coordinator was seen to renew its lease [S9]",
			edits:  in("sharding", "return h, leases.Held.Renewed(ctx, lease)", "_ = leases.Held; <-ctx.Done(); return h, ctx.Err()"),
			killer: killer{pkg: "./sharding", run: "^TestOrphan_GivesUpAfterARenewalOfTheCoordinator$"},
		},
		{
			name:   "an announcement of an ended tenure is accepted",
			rule:   "after a message of the host that ends a tenure, nothing is sent under it [S10]",
			edits:  in("sharding", "token <= s.to || token <= s.floor", "token <= s.to"),
			killer: killer{pkg: shardCore, run: "^TestRoute_ATenureThatWasPausedStaysSo$"},
		},
		{
			name:   "a host that is not in view counts as having ended its tenure",
			rule:   "only a message of the host ends a tenure [S10b]",
			edits:  in("sharding", "\ts.shut()\n\tif slices.Contains", "\ts.forget(s.to)\n\tif slices.Contains"),
			killer: shardChaos,
		},
		{
			name:   "entities are stopped without waiting for the other regions",
			rule:   "a host stops its entities when every region has flushed [S11]",
			edits:  in("sharding", "\tif s.r.now.Before(s.since.Add(s.r.cfg.FlushTimeout)) {", "\tif false {"),
			killer: plannedMoves,
		},
		{
			name:   "a region ends before its last messages have arrived",
			rule:   "a region ends when all members have confirmed its messages [S11g]",
			edits:  in("sharding", " || !r.finish.IsZero())", ")"),
			killer: killer{pkg: shardCore, run: "^TestRegion_EndsWhenItsMessagesHaveArrived$"},
		},
		{
			name: "a shard moves again before it has arrived, and its last assigned home counts as its last holder",
			rule: "an assignment names every region that may still have the shard [S19]",
			edits: []edit{
				{"sharding", "\t\tif !c.has(was.Home, s) {", "\t\tif false {"},
				{"sharding", " ||\n\t\t!c.has(c.table.entries[ev.Shard].Home, ev.Shard) {", " {"},
			},
			killer: killer{pkg: shardCore, run: "^TestAllocation_NamesAllThatMayHaveAShard$"},
		},
		{
			name: "a Free message for an earlier assignment counts",
			rule: "a region announces a shard as free under one assignment [S19b]",
			edits: []edit{
				{"sharding", "s.phase != Waiting || f.Version != s.r.table.entries[s.n].Version {", "s.phase != Waiting {"},
				{"sharding", "s.freeOf == a.Version && ", ""},
			},
			killer: plannedMoves,
		},
		{
			name:   "a silent region that may still have a shard is awaited forever",
			rule:   "after a long silence, the store decides [S20]",
			edits:  in("sharding", "|| !s.r.now.Before(s.since.Add(s.r.cfg.Patience)) {", "{"),
			killer: shardChaos,
		},
		{
			name:   "one failed call of the store counts as an outage",
			rule:   "a store fails when it has not answered until leases are near expiry [S30]",
			edits:  in("coordination", "\t\tc.Failed++\n", "\t\tc.Failed++\n\t\ts.stats.expired = true\n"),
			killer: killer{pkg: "./coordination", run: "^TestFailing_WithASessionRecord$"},
		},
		{
			name:   "the first member to start decides on the settings",
			rule:   "the settings that most members have count",
			edits:  in("sharding", "b.missing > 0 && !late", "false"),
			killer: killer{pkg: "./sharding", run: "^TestSettings_WaitForAnnouncements$"},
		},
		{
			name:   "homes are chosen by number modulo members",
			rule:   "with rendezvous hashing, only a new member gets shards [S26]",
			edits:  in("sharding", "\treturn slices.MaxFunc(fit, func(a, b Member) int {\n\t\treturn cmp.Compare(weight(uint64(s), a), weight(uint64(s), b))\n\t})", "\treturn fit[s%len(fit)]"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_RendezvousMovesOnlyToTheNewMember$"},
		},
		{
			name:   "equal members get the next shard in the same order for each type",
			rule:   "the odd shards of types go to different members [S26]",
			edits:  in("sharding", "odd: hash(cfg.Type), ", ""),
			killer: killer{pkg: shardCore, run: "^TestAllocation_NoMemberGetsTheOddShardOfEveryType$"},
		},
		{
			name:   "an override for a member that is not fit is followed",
			rule:   "an override counts while its member is fit [S35]",
			edits:  in("sharding", "i := slices.IndexFunc(fit, func(m Member) bool { return m.ID == name || m.Address == name })\n\tif i < 0 {\n\t\treturn Member{}, false\n\t}\n\treturn fit[i], true", "i := slices.IndexFunc(fit, func(m Member) bool { return m.ID == name || m.Address == name })\n\tif i < 0 {\n\t\treturn Member{ID: name, Incarnation: 1}, true\n\t}\n\treturn fit[i], true"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Overrides$", args: "-whole"},
		},
		{
			name:   "a shard with an override is moved for balance",
			rule:   "a shard with an override is not moved for balance [S35b]",
			edits:  in("sharding", "\t\t\t_, ok := c.override(s, fit)\n\t\t\treturn ok\n", "\t\t\treturn false\n"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_FollowsOverridesForFitMembers$"},
		},
		{
			name:   "a shard waits for the user's function forever",
			rule:   "a shard without a home waits for the user's function for a bounded time [S36]",
			edits:  in("sharding", "return c.open && c.now.Before(c.asked.Add(c.cfg.Answer))", "return c.open"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Consults$", args: "-whole"},
		},
		{
			name:   "a late answer to an earlier question is accepted",
			rule:   "an answer counts only for its question [S36b]",
			edits:  in("sharding", "if !c.open || ev.Round != c.round {", "if !c.open {"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_WaitsForAnAnswerButNotForLong$"},
		},
		{
			name:   "the last members wait for one that has stopped and is still listed",
			rule:   "a member that was not heard for a while does not count as one that may host [S29]",
			edits:  in("sharding", "c.fit(m, true) || c.unheard(m) }", "c.fit(m, true) || c.of(m) == nil }"),
			killer: killer{pkg: "./sharding", run: "^TestClose_TheLastTwoAtOnce$"},
		},
		{
			name:   "a region that leaves with all others takes shards again",
			rule:   "a leaving region that was told that all leave takes no shard again [S29b]",
			edits:  in("sharding", "r.orphan && r.leaving, r.over || t.Over", "r.orphan && r.leaving, t.Over"),
			killer: killer{pkg: shardCore, run: "^TestRegion_TakesNoShardAgainAfterAllLeave$"},
		},
		{
			name:   "a region ends in silence",
			rule:   "a region that has ended tells every member [S29c]",
			edits:  in("sharding", "\t\tr.tell(to, Farewell())\n", "\t\t_ = to\n"),
			killer: golden(shardCore, "leave"),
		},
		{
			name:   "a coordinator does not know of regions that ended before it began",
			rule:   "a coordinator does not wait for a region that has ended [S29c]",
			edits:  in("sharding", "if first {\n\t\tfor _, m", "if first && false {\n\t\tfor _, m"),
			killer: killer{pkg: "./sharding", run: "^TestClose_TheNextCoordinatorKnows$"},
		},
		{
			name:   "a phase change of a shard is not shown",
			rule:   "status shows every change of a shard",
			edits:  in("sharding", "\ts.phase, s.since = p, s.r.now\n\ts.mark()", "\ts.phase, s.since = p, s.r.now"),
			killer: shardChaos,
		},
		{
			name:   "a new home of a shard is not shown",
			rule:   "status shows every change of a shard",
			edits:  in("sharding", "\tr.shards[n].mark()\n\tdo(", "\tdo("),
			killer: plannedMoves,
		},
		{
			name:   "shards move for balance as soon as the view has changed",
			rule:   "no shard moves by choice for Stable after the view has changed [S27]",
			edits:  in("sharding", "c.now.Before(c.changed.Add(c.cfg.Stable))", "false"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_MovesForBalanceAFewAtATime$"},
		},
		{
			name:   "shards move for balance while a member cannot host",
			rule:   "no shard moves by choice while a member is not fit [S27]",
			edits:  in("sharding", "slices.ContainsFunc(c.view, fails) ||", "slices.ContainsFunc(fit, fails) ||"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_NoBalancingWhileAMemberCannotHost$"},
		},
		{
			name:   "any number of shards moves for balance at once",
			rule:   "no shard moves by choice while Moves shards are moving [S27]",
			edits:  in("sharding", "\t\t} else {\n\t\t\troom--\n\t\t}", "\t\t}"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_MovesForBalanceAFewAtATime$"},
		},
		{
			name:   "the member that notices the end of an outage first gets all shards",
			rule:   "a home keeps its shards until members have differed in the store for Fit [S8d]",
			edits:  in("sharding", " && !c.unsure(a.Home)", ""),
			killer: killer{pkg: shardCore, run: "^TestAllocation_AnOutageForAllMovesNoShard$"},
		},
		{
			name:   "all shards try a failing store five times a second",
			rule:   "a region tries a store that does not answer less and less often",
			edits:  in("sharding", "unknownPause<<min(s.unanswered, 16)", "unknownPause"),
			killer: killer{pkg: shardCore, run: "^TestShard_TriesAFailingStoreLessAndLessOften$"},
		},
		{
			name:   "each failed attempt at a lease is logged",
			rule:   "an outage of the store does not flood the log",
			edits:  in("sharding", "unlogged, due := c.attempts.Due(c.binding.clock.Now(), quiet); due", "unlogged := 0; true"),
			killer: killer{pkg: "./sharding", run: "^TestLease_AStoreThatFailsIsTriedAgain$"},
		},
		{
			name:   "a region gives up its shards while there is no coordinator, and messages wait",
			rule:   "no message waits for the coordinator [S9b]",
			edits:  in("sharding", "\t\tr.emit(Look{})", "\t\tr.orphan = true\n\t\tr.settle()"),
			killer: killer{pkg: "./sharding", run: "^TestCoordinator_MovesOrDiesAndNoMessageWaits$"},
		},
		{
			name:   "a handler that ends its goroutine ends the announcements of shards",
			rule:   "handlers of ShardChanged do no harm",
			edits:  in("internal", "\tgo func() {\n\t\tdefer close(done)\n\t\tCall(", "\tfunc() {\n\t\tdefer close(done)\n\t\tCall("),
			killer: killer{pkg: "./sharding", run: "^TestShardChanged_IsPublished$"},
		},
		{
			name:   "the prefix of a type's leases may end with a digit",
			rule:   "the leases of two types have different names",
			edits:  in("sharding", "n > 0 && isDigit(rune(c.LeasePrefix[n-1]))", "n < 0"),
			killer: killer{pkg: "./sharding", run: "^TestConfig_NoLeaseHasTwoTypes$"},
		},
		{
			name:   "the supervisor of a shard stops before its entities",
			rule:   "a supervisor stops after its entities",
			edits:  in("sharding", "if v.over && v.live <= 0 {", "if v.over {"),
			killer: killer{pkg: "./sharding", run: "^TestSupervisor_WaitsForItsEntities$"},
		},
	}
}
