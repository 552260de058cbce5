package main

// arbiters are bugs of the arbiter, which decides which side of a partition hosts.
func arbiters() []mutant {
	const pkg, top = "./node/internal/arbiter", "./node"
	sim := killer{pkg: pkg, run: "TestSimulation_OneSideHosts", args: "-whole"}
	return []mutant{
		{
			name:   "a side that has stepped down opens its gate",
			rule:   "a side stops guarded work while another side hosts",
			edits:  in("node", "k == Pending || k == Whole || k == Ours", "k != Undecided"),
			killer: sim,
		},
		{
			name:   "a majority waits for the store",
			rule:   "a side with a majority hosts, whether or not the store answers",
			edits:  in("node", "default:\n\t\tc.rule(Pending, \"\")\n\t}\n}\n\n// alone", "default:\n\t\tc.rule(Undecided, \"\")\n\t}\n}\n\n// alone"),
			killer: killer{pkg: pkg, run: "^TestCore_MajorityNeverWaitsForTheStore$"},
		},
		{
			name:   "a member that sees only itself begins a cluster beside a half that hosts",
			rule:   "a side without a majority hosts until a majority is back",
			edits:  in("node", "(!alone || c.rest.held)", "true"),
			killer: killer{pkg: pkg, run: "^TestCore_NewMemberIsShutWhileAHalfHosts$"},
		},
		{
			name:   "host with another lease store than the leader",
			rule:   "a member hosts only with the lease store of its leader",
			edits:  in("node", "told != 0 && c.otherStore()", "told != 0 && c.otherStore() && false"),
			killer: killer{pkg: pkg, run: "^TestCore_AnotherLeaseStore$"},
		},
		{
			name:   "an unknown outcome counts as held",
			rule:   "a side without a majority hosts only while it holds a lease",
			edits:  in("node", "l.held = e.Result == Held", "l.held = e.Result != Taken"),
			killer: sim,
		},
		{
			name:   "a side ignores the loss of its lease",
			rule:   "a side without a majority keeps its gate open only while it holds the lease",
			edits:  in("node", "if l.held && e.Op == l.op {", "if e.Op == 0 {"),
			killer: sim,
		},
		{
			name:   "a minority tries as soon as the store answers again",
			rule:   "the majority acquires its lease first",
			edits:  in("node", "waits := back.Add(c.cfg.TTL)", "waits := back"),
			killer: killer{pkg: pkg, run: "^TestCore_AMinorityWaitsWhenTheStoreAnswersAgain$"},
		},
		{
			name:   "a leader that has just started does not wait after an outage",
			rule:   "the majority acquires its lease first",
			edits:  in("node", "if c.unsure && back", "if c.ended && back"),
			killer: killer{pkg: pkg, run: "^TestCore_ALeaderThatCannotKnowOfAnOutageWaits$"},
		},
		{
			name:   "a change of the view hides that the store was away",
			rule:   "the majority acquires its lease first",
			edits:  in("node", "l.asked, l.answer, l.due = false, Unknown, time.Time{}", "l.asked, l.answer, l.due, l.back = false, Unknown, time.Time{}, time.Time{}"),
			killer: killer{pkg: pkg, run: "^TestSimulation_OneSideHosts$", args: "-whole"},
		},
		{
			name:   "members trust a silent leader",
			rule:   "a member of a side without a majority shuts its gate when its leader is silent for Lapse",
			edits:  in("node", "c.reached(c.heard.Add(lasts)) {", "c.ended {"),
			killer: killer{pkg: pkg, run: "^TestCore_AMinorityDoesNotTrustASilentLeader$"},
		},
		{
			name:   "the first member takes itself for the cluster",
			rule:   "fewer than MinMembers members do not begin a cluster",
			edits:  in("node", "c.count(2*c.cfg.Members - 1)", "c.count(1)"),
			killer: killer{pkg: pkg, run: "^TestCore_BeginningOfAClusterNeedsItsMembers$"},
		},
		{
			name:   "the first member hosts as a rest of the cluster",
			rule:   "fewer than MinMembers members do not begin a cluster, whatever the store answers",
			edits:  in("node", "early := !c.begun && c.known() == 0", "early := false"),
			killer: killer{pkg: pkg, run: "^TestCore_BeginningOfAClusterNeedsItsMembers$"},
		},
		{
			name:   "a later incarnation that is alone waits for others",
			rule:   "the others may be gone for good",
			edits:  in("node", "begun: cfg.Later", "begun: false"),
			killer: killer{pkg: pkg, run: "^TestCore_ALeaderThatCannotKnowOfAnOutageWaits$"},
		},
		{
			name:   "a minority keeps the lease of the majority",
			rule:   "a side that loses its majority releases the lease",
			edits:  in("node", "c.release(&c.major)\n\tif c.attempt(&c.probe)", "if c.attempt(&c.probe)"),
			killer: killer{pkg: pkg, run: "^TestCore_MinorityStopsWhenTheStoreAnswers$"},
		},
		{
			name:   "a minority goes on beside a majority",
			rule:   "a side without a majority steps down when a majority is back",
			edits:  in("node", "if c.rest.held && c.probe.is(Taken) {", "if c.rest.held && c.ended {"),
			killer: killer{pkg: pkg, run: "^TestCore_RestStepsDownForAMajority$"},
		},
		{
			name:   "a minority does not wait until its leases have ended",
			rule:   "without the store nothing stops before its lease ends",
			edits:  in("node", "!c.reachable && !c.reached(", "!c.reachable && c.reached("),
			killer: killer{pkg: pkg, run: "^TestCore_MinorityWithoutStoreStopsAfterItsLeases$"},
		},
		{
			name: "members that left in order count as missing",
			rule: "an orderly leave shuts no gate",
			edits: []edit{
				{"node", "c.leaving[e.From] = true", "_ = c.leaving"},
				{"node", "case c.gone[e.From] && e.Verdict.Kind == Leaving:", "case false:"},
			},
			killer: killer{pkg: top, run: "^TestArbiter_AnOrderlyLeaveIsNoLoss$"},
		},
		{
			name:   "a majority by a count of others hosts beside its leader's verdict",
			rule:   "one side hosts, also if members that were not counted are among those seen",
			edits:  in("node", "c.reached(c.elsewhere.Add(c.cfg.lives())):", "false:"),
			killer: killer{pkg: pkg, run: "^TestSavedHistories$"},
		},
		{
			name:   "a smaller side tries first",
			rule:   "the more members a side without a majority has, the sooner it tries",
			edits:  in("node", "time.Duration(n-size)", "time.Duration(size)"),
			killer: killer{pkg: pkg, run: "^TestCore_SmallerSidesTryLater$"},
		},
		{
			name:   "a side shuts when an older member that has yielded to it is back",
			rule:   "a side with a majority hosts as soon as its views show it",
			edits:  in("node", "c.viewAt.Add(c.cfg.handed())", "c.viewAt"),
			killer: killer{pkg: pkg, run: "^TestCore_TheSideThatAnOlderMemberYieldedTo$"},
		},
		{
			name:   "a first incarnation that is removed closes the session",
			rule:   "the session outlives every incarnation but the last",
			edits:  in("node", "stopped := r.stop(n, !again)", "stopped := r.stop(n, r.incarnation == 1)"),
			killer: killer{pkg: "./lab/noderun", run: "^TestRun_RemovedDuringTheFirstStart$"},
		},
		{
			name:   "the guard waits for the loss of the lease",
			rule:   "guarded work stops before its leases end",
			edits:  in("node", "case near <- struct{}{}:", "case chan<- struct{}(nil) <- struct{}{}:"),
			killer: killer{pkg: top, run: "^TestGuard_ShutsBeforeTheLeaseIsLost$"},
		},
		{
			name:   "a stream to a peer is tried once",
			rule:   "a peer is connected again soon after a partition",
			edits:  in("node", "append(opts, grpc.WaitForReady(true))", "append(opts, grpc.WaitForReady(false))"),
			killer: killer{pkg: top, run: "^TestConnector_APeerIsReachedAsSoonAsItCanBe$"},
		},
		{
			name:   "a cluster does not begin while its oldest member does not reach the store",
			rule:   "a cluster begins if one member reaches the store",
			edits:  in("node", "c.unnumbered.IsZero() || len", "true || len"),
			killer: killer{pkg: pkg, run: "^TestSimulation_BeginWithoutTheStore$"},
		},
		{
			name:   "an oldest member without the store does not learn how many there are",
			rule:   "a leader that does not know the number is told it",
			edits:  in("node", "case c.leads() && c.known() == 0 && e.Verdict.Members > 0:", "case false:"),
			killer: killer{pkg: pkg, run: "^TestCore_AnOldestWithoutTheStoreIsToldTheNumber$"},
		},
		{
			name:   "a member begins beside an oldest one that is about to",
			rule:   "a leader has a TTL to acquire the lease",
			edits:  in("node", "waits := max(c.cfg.TTL, joining)", "waits := time.Duration(0)"),
			killer: killer{pkg: pkg, run: "^TestCore_AMemberBeginsForAnOldestWithoutTheStore$"},
		},
		{
			name:   "members that are assumed to exist are missing when others leave",
			rule:   "when members leave in order, those count that have been seen",
			edits:  in("node", "if c.assumed && c.founded {\n\t\tc.assumed = false", "if false {\n\t\tc.assumed = false"),
			killer: killer{pkg: pkg, run: "^TestCore_MembersLeaveJustAfterTheBeginning$"},
		},
		{
			name:   "members that are assumed to exist are missing if others left too early",
			rule:   "when members leave in order, those count that have been seen",
			edits:  in("node", "if len(c.leaving) > 0 {", "if false {"),
			killer: killer{pkg: pkg, run: "^TestCore_MembersLeaveDuringTheBeginning$"},
		},
		{
			name:   "the number that a leaving oldest member says is ignored",
			rule:   "when members leave in order, those count that have been seen",
			edits:  in("node", "!c.leads() && c.known() > 0 && e.Verdict.Members > 0", "false"),
			killer: killer{pkg: pkg, run: "^TestCore_TheOldestLeavesJustAfterTheBeginning$"},
		},
	}
}
