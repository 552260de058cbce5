package main

// arbiters are bugs of the arbiter, which decides which side of a partition hosts.
func arbiters() []mutant {
	const dir, pkg, top = "node/internal/arbiter/", "./node/internal/arbiter", "./node"
	sim := killer{pkg: pkg, run: "TestSimulation_OneSideHosts", args: "-whole"}
	return []mutant{
		{
			name:   "a side without the lease opens its gate",
			rule:   "a side stops guarded work while another side holds the lease",
			edits:  in(dir+"event.go", "k == Pending || k == Whole || k == Ours", "k != Undecided"),
			killer: sim,
		},
		{
			name:   "an unknown outcome counts as held",
			rule:   "guarded work stops when the store does not answer",
			edits:  in(dir+"lead.go", "if e.Result != Held {", "if e.Result == Taken {"),
			killer: sim,
		},
		{
			name:   "a side ignores the loss of its lease",
			rule:   "under the lease, a side keeps its gate open only while it holds the lease",
			edits:  in(dir+"lead.go", "if e.Op != c.held || c.held == 0 {", "if e.Op != 0 {"),
			killer: sim,
		},
		{
			name:   "members trust a silent leader",
			rule:   "a member shuts its gate when it has not heard about the lease for Lapse",
			edits:  in(dir+"core.go", "!c.heard.IsZero() && !c.reached(c.heard.Add(c.cfg.Lapse))", "!c.heard.IsZero()"),
			killer: sim,
		},
		{
			name:   "the leader releases the lease while other members still rely on it",
			rule:   "the leader releases the lease Lapse after the last message that claims it",
			edits:  in(dir+"lead.go", "c.releaseAt = c.now.Add(c.cfg.Lapse)", "c.releaseAt = c.now"),
			killer: killer{pkg: pkg, run: "TestSimulation_OneSideHosts", args: "-whole -seeds 20000"},
		},
		{
			name:   "a side that has just started counts as whole",
			rule:   "a member that starts holds the lease once before its gate opens",
			edits:  in(dir+"core.go", "if whole := n > 0 && ", "if whole := "),
			killer: killer{pkg: pkg, run: "^TestCore_AMemberThatStartsHoldsTheLeaseOnce$"},
		},
		{
			name:   "a former leader keeps the lease",
			rule:   "a holder releases the lease when it hears an older leader",
			edits:  in(dir+"core.go", "c.surrender() // to the leader of both members", "_ = c.cfg"),
			killer: sim,
		},
		{
			name:   "a side tries only once",
			rule:   "a side tries again after Retry",
			edits:  in(dir+"lead.go", "if !c.trying && c.reached(turn) {", "if !c.trying && !c.asked && c.reached(turn) {"),
			killer: sim,
		},
		{
			name:   "the lease is never released",
			rule:   "the holder releases the lease when no member is missing",
			edits:  in(dir+"lead.go", "if c.reached(c.releaseAt) {", "if c.reached(c.releaseAt) && c.ended {"),
			killer: sim,
		},
		{
			name: "members that left in order count as missing",
			rule: "an orderly leave shuts no gate",
			edits: []edit{
				{dir + "core.go", "c.leaving[e.From] = true", "_ = c.leaving"},
				{dir + "core.go", "case c.gone[e.From] && e.Verdict.Kind == Leaving:", "case false:"},
			},
			killer: killer{pkg: top, run: "^TestArbiter_AnOrderlyLeaveIsNoLoss$"},
		},
		{
			name:   "the minority tries first",
			rule:   "the more members a side sees, the sooner it tries",
			edits:  in(dir+"config.go", "case 2*size > n:\n\t\treturn 0", "case 2*size < n:\n\t\treturn 0"),
			killer: killer{pkg: top, run: "^TestArbiter_TheMajorityHosts$"},
		},
		{
			name:   "the guard waits for the loss of the lease",
			rule:   "guarded work stops before its leases end",
			edits:  in("node/nodeguard.go", "case near <- struct{}{}:", "case chan<- struct{}(nil) <- struct{}{}:"),
			killer: killer{pkg: top, run: "^TestGuard_ShutsBeforeTheLeaseIsLost$"},
		},
		{
			name:   "a stream to a peer is tried once",
			rule:   "a peer is connected again soon after a partition",
			edits:  in("node/dial.go", "append(opts, grpc.WaitForReady(true))", "append(opts, grpc.WaitForReady(false))"),
			killer: killer{pkg: top, run: "^TestConnector_APeerIsReachedAsSoonAsItCanBe$"},
		},
	}
}
