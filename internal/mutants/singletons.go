package main

// singletons are bugs of the lease-gated singleton.
func singletons() []mutant {
	const dir, pkg, top = "singleton/internal/core/", "./singleton/internal/core", "./singleton"
	sim := killer{pkg: pkg, run: "TestSimulation_AtMostOneInstance", args: "-whole"}
	liveness := killer{pkg: pkg, run: "TestSimulation_SomebodyHostsWhileAnybodyCan", args: "-whole"}
	return []mutant{
		{
			name:   "a handler that ends its goroutine ends the announcements",
			rule:   "handlers of PlaceChanged do no harm",
			edits:  in("singleton/where.go", "go func() { // a handler may end its goroutine\n", "func() {\n"),
			killer: killer{pkg: "./singleton", run: "TestPlaceChanged_IsPublished"},
		},
		{
			name:   "release before the instance has stopped",
			rule:   "a tenure is released only when its instance has terminated",
			edits:  in(dir+"tenure.go", "m.emit(Stop{m.run})", "m.emit(Stop{m.run})\n\tm.release()"),
			killer: sim,
		},
		{
			name:   "release on loss without waiting for the instance",
			rule:   "a tenure is released only when its instance has terminated",
			edits:  in(dir+"tenure.go", "case Stopping:\n\t\tm.kill()", "case Stopping:\n\t\tm.kill()\n\t\tm.release()"),
			killer: golden(pkg, "loss"),
		},
		{
			name:   "start without the lease",
			rule:   "an instance is started only under a tenure",
			edits:  in(dir+"machine.go", "m.enter(AcquiringLease)\n", "m.start()\n\t\treturn\n"),
			killer: sim,
		},
		{
			name:   "continue after a loss",
			rule:   "a loss ends the instance at once",
			edits:  in(dir+"tenure.go", "m.enter(Stopping)\n\t\tm.emit(Pause{Token: m.token, Lost: true})\n\t\tm.kill()", "m.enter(Active)"),
			killer: saved(pkg, "goes_on_after_a_loss"),
		},
		{
			name:   "let the instance finish after a loss",
			rule:   "the instance ends before another member can hold the lease",
			edits:  in(dir+"tenure.go", "m.enter(Stopping)\n\t\tm.emit(Pause{Token: m.token, Lost: true})\n\t\tm.kill()", "m.stop()"),
			killer: killer{pkg: top, run: "^TestScenario_AStubbornInstanceDoesNotOutliveItsLease$"},
		},
		{
			name:   "keep a grant that arrives too late",
			rule:   "an unrequested grant is released",
			edits:  in(dir+"tenure.go", "m.emit(Release{ev.Token})\n\t\t}", "_ = ev\n\t\t}"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "host on a late grant when no longer oldest",
			rule:   "a grant is used only if the instance is still wanted",
			edits:  in(dir+"tenure.go", "if !m.wanted() {\n\t\tm.release()", "if m.closing {\n\t\tm.release()"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "start a second attempt while the first is being cancelled",
			rule:   "at most one attempt to acquire is pending",
			edits:  in(dir+"machine.go", "m.enter(Cancelling)\n\tm.emit(Cancel{m.attempt})", "m.emit(Cancel{m.attempt})\n\tm.enter(Younger)"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "host again after leaving",
			rule:   "a member that has left never hosts again",
			edits:  in(dir+"machine.go", "func (m *Machine) over() bool { return m.closing || m.ring.removed }", "func (m *Machine) over() bool { return m.closing }"),
			killer: golden(pkg, "removed"),
		},
		{
			name:   "a route accepts a host of an older tenure",
			rule:   "a tenure with a smaller token is over, even if its host has not noticed",
			edits:  in(dir+"route.go", "|| r.host.known() &&\n\t\tev.Token < r.token {", "{"),
			killer: golden(pkg, "route_.*"),
		},
		{
			name:   "messages are forwarded without a limit of hops",
			rule:   "a message is forwarded a bounded number of times",
			edits:  in("singleton/entry.go", "if n < 0 || n >= maxHops {", "if n < 0 {"),
			killer: killer{pkg: top, run: "TestHops_AreBounded"},
		},
		{
			name:   "messages for an instance are buffered without a limit",
			rule:   "buffers are bounded; the newest messages are refused and counted",
			edits:  in("coordination/stash/stash.go", "if s.Len() >= s.limit {", "if false {"),
			killer: killer{pkg: top, run: "TestBuffer_NewestAreRefusedAndCounted"},
		},
		{
			name:   "kept messages are replayed behind the mailbox",
			rule:   "kept messages are handled in order, before those in the mailbox",
			edits:  in("coordination/stash/stash.go", "ctx.Receive(e.Envelope())", "ctx.Send(ctx.Self(), e.Envelope())"),
			killer: killer{pkg: "./coordination/stash", run: "TestReplay_BeforeTheMailboxInOrderWithSenders"},
		},
		{
			name:   "kept messages vanish with their actor",
			rule:   "the sender of a discarded message is answered",
			edits:  in("coordination/stash/stash.go", "ctx.ActorSystem().DeadLetter.SendUserMessage(ctx.Self(), e.Envelope())", "_ = e"),
			killer: killer{pkg: "./coordination/stash", run: "TestDiscard_StoppedActorAnswersAtOnce"},
		},
		{
			name:   "abstain although no other member may host",
			rule:   "the last member that may host keeps trying",
			edits:  in(dir+"abstain.go", "if m.ring.others() && !m.over() {", "if !m.over() {"),
			killer: golden(pkg, "abstain_alone"),
		},
		{
			name:   "the oldest member keeps trying with a silent store",
			rule:   "a member that cannot host announces this",
			edits:  in(dir+"tenure.go", "must not spin\n\t\tm.silence()", "must not spin"),
			killer: liveness,
		},
		{
			name:   "an abstention is announced once",
			rule:   "announcements may be lost",
			edits:  in(dir+"abstain.go", "a.tell = m.now.Add(m.cfg.Repeat)\n\t\tm.emit(TellAbstain{a.seq, m.cfg.Abstain, a.failing, a.claims})", "a.tell = time.Time{}\n\t\tm.emit(TellAbstain{a.seq, m.cfg.Abstain, a.failing, a.claims})"),
			killer: liveness,
		},
		{
			name:   "an older abstention counts",
			rule:   "of two abstentions of one member, the larger sequence number counts",
			edits:  in(dir+"ring.go", "case ev.Seq < a.seq:", "case false:"),
			killer: golden(pkg, "abstain_others"),
		},
		{
			name:   "an abstention is valid for any announced time",
			rule:   "every value from a peer is bounded",
			edits:  in(dir+"ring.go", "r.now.Add(min(ev.For, longestAbsence))", "r.now.Add(max(ev.For, longestAbsence))"),
			killer: golden(pkg, "abstain_others"),
		},
		{
			name:   "a member takes the instance back as soon as the store answers",
			rule:   "the instance does not flap when a store comes and goes",
			edits:  in(dir+"abstain.go", "return !back.IsZero() && !m.now.Before(back)", "return !back.IsZero()"),
			killer: golden(pkg, "abstain_store"),
		},
		{
			name:   "an instance behind a shut gate has the usual time to stop",
			rule:   "a shut gate stops the instance within Hurry",
			edits:  in(dir+"abstain.go", "m.hurry()\n\t\tm.abstain()", "m.abstain()"),
			killer: sim,
		},
		{
			name:   "a tick that has passed is requested again and again",
			rule:   "a tick that has passed is not requested again",
			edits:  in(dir+"machine.go", "if m.passed() {\n\t\tm.due = time.Time{}\n\t}", ""),
			killer: sim,
		},
		{
			name:   "a host with failing instances keeps the instance",
			rule:   "after Tries failures in a row, the next oldest member hosts",
			edits:  in(dir+"tenure.go", "m.failures >= m.cfg.Tries && m.ring.others()", "false && m.ring.others()"),
			killer: liveness,
		},
		{
			name:   "a member with failed instances takes the instance back",
			rule:   "an instance that runs is not moved to a member where it failed",
			edits:  in(dir+"abstain.go", "case !a.faulty:\n\t\treturn a.able", "case !false:\n\t\treturn a.able"),
			killer: golden(pkg, "failing"),
		},
		{
			name:   "the last member does not announce that instances fail there",
			rule:   "members with failing instances take turns",
			edits:  in(dir+"tenure.go", "return hosting && m.failures", "return false && hosting && m.failures"),
			killer: liveness,
		},
		{
			name:   "the last member steps aside when instances fail",
			rule:   "the last member that may host keeps trying",
			edits:  in(dir+"tenure.go", "m.failures >= m.cfg.Tries && m.ring.others() && !m.over()", "m.failures >= m.cfg.Tries && !m.over()"),
			killer: golden(pkg, "failing_alone"),
		},
		{
			name:   "release after a panic without waiting for the instance",
			rule:   "a tenure is released only when its instance has terminated",
			edits:  in(dir+"tenure.go", "\tm.broken = false\n\tm.enter(Stopping)", "\tm.release()\n\treturn\n\tm.enter(Stopping)"),
			killer: sim,
		},
		{
			name:   "a state that fits into no envelope is sent",
			rule:   "a state of MaxState bytes passes",
			edits:  in("singleton/warm.go", "const MaxState = 255 << 10", "const MaxState = 256 << 10"),
			killer: killer{pkg: "./singleton", run: "TestWarm_StateAtTheBoundPasses"},
		},
		{
			name:   "the longest wait after a failure is not configured",
			rule:   "the back-off of an instance is between MinBackoff and MaxBackoff",
			edits:  in("singleton/manager.go", "MaxBackOff: l.cfg.MaxBackoff", "MaxBackOff: 10*time.Second"),
			killer: killer{pkg: "./singleton", run: "TestFailing_TheWaitIsConfigured"},
		},
		{
			name:   "a host accepts a state although another tenure was in between",
			rule:   "a transferred state is never stale",
			edits:  in("singleton/warm.go", "if s == nil || coordination.Token(s.Token) != grant.Previous() {", "if s == nil {"),
			killer: killer{pkg: top, run: "^TestWarm_StateOfAnEarlierTenureIsNotTakenOver$"},
		},
		{
			name:   "the lease is released before the next host has the state",
			rule:   "the next host has the state before its tenure begins",
			edits:  in("singleton/tenancy.go", "if given != nil {", "if false {"),
			killer: killer{pkg: top, run: "^TestWarm_StatePassesInAPlannedMove$"},
		},
		{
			name:   "host immediately after the start",
			rule:   "members that start together start the instance once",
			edits:  in(dir+"machine.go", "return m.elected() && m.seated }", "return m.elected() }"),
			killer: killer{pkg: top, run: "TestStart_TheInstanceIsMadeOnceAndDoesNotMove"},
		},
		{
			name:   "an Ask to a dropped host waits for its context",
			rule:   "the caller of an Ask without an answer is notified",
			edits:  in(dir+"route.go", "r.emit(Orphaned{r.last})", ""),
			killer: killer{pkg: top, run: "TestAsk_ToAKilledHostIsUnknownWhenItIsDropped"},
		},
		{
			name:   "each member elects the member that it prefers",
			rule:   "members with different preferences elect one host",
			edits:  in(dir+"ring.go", "if r.claimed(m) && r.able(m) {", "if m.same(r.best()) {"),
			killer: liveness,
		},
		{
			name:   "the oldest member does not claim against another claim",
			rule:   "members with different preferences elect one host",
			edits:  in(dir+"claim.go", "(!r.oldest().same(r.self) || r.rivals())", "!r.oldest().same(r.self)"),
			killer: sim,
		},
		{
			name:   "the oldest member does not wait for the claim of a preferred one",
			rule:   "one change of members moves the instance once at most",
			edits:  in(dir+"claim.go", "return m.now.Before(m.grace)", "return false"),
			killer: killer{pkg: pkg, run: "TestSimulation_OneMovePerChange", args: "-whole"},
		},
		{
			name:   "the wait for a claim begins again and again",
			rule:   "the wait for a claim is bounded",
			edits:  in(dir+"claim.go", "case m.grace.IsZero():", "default:"),
			killer: golden(pkg, "claim_waits"),
		},
		{
			name:   "a claim is valid for ever",
			rule:   "every announcement expires",
			edits:  in(dir+"ring.go", "a.member.same(m) && a.claims && r.now.Before(a.until)", "a.member.same(m) && a.claims"),
			killer: golden(pkg, "claim"),
		},
		{
			name:   "a member claims the instance before it may host",
			rule:   "the instance moves only to a member that is ready to host",
			edits:  in(dir+"claim.go", "m.seated && !m.over()", "!m.over()"),
			killer: golden(pkg, "claim_settle"),
		},
		{
			name:   "application versions are compared as texts",
			rule:   "versions have the order of Semantic Versioning",
			edits:  in("internal/membership/version.go", "return cmp.Compare(x, y)", "return strings.Compare(a, b) + 0*cmp.Compare(x, y)"),
			killer: killer{pkg: "./internal/membership", run: "TestVersions_AreOrderedAsSemanticVersioningSays"},
		},
		{
			name:   "a planned move fails an Ask",
			rule:   "a planned move loses no message",
			edits:  in(dir+"route.go", "if !left {", "if !left || left {"),
			killer: golden(pkg, "route_orphans"),
		},
		{
			name:   "a Singleton keeps the ended life",
			rule:   "nothing retains an actor system that has ended",
			edits:  in("internal/lifecycle/present.go", "if p.life.CompareAndSwap(l, nil) {", "if true {"),
			killer: killer{pkg: top, run: "TestLives_NothingKeepsALifeThatHasEnded"},
		},
		{
			name:   "an Ask between two lives fails at once",
			rule:   "calls wait for the next life",
			edits:  in("singleton/lives.go", "s.present.Begin(l, lives == nil)", "s.present.Begin(l, true)"),
			killer: killer{pkg: top, run: "TestLives_TheSameSingletonWorksInTheNextLife"},
		},
	}
}
