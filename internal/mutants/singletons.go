package main

// singletons are bugs of the lease-gated singleton.
func singletons() []mutant {
	const dir, pkg, top = "singleton/internal/core/", "./singleton/internal/core", "./singleton"
	sim := killer{pkg: pkg, run: "TestSimulation_AtMostOneInstance", args: "-whole"}
	liveness := killer{pkg: pkg, run: "TestSimulation_SomebodyHostsWhileAnybodyCan", args: "-whole"}
	return []mutant{
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
			name:   "go on after a loss",
			rule:   "a loss ends the instance at once",
			edits:  in(dir+"tenure.go", "m.enter(Stopping)\n\t\tm.emit(Pause{Token: m.token, Lost: true})\n\t\tm.kill()", "m.enter(Active)"),
			killer: saved(pkg, "goes_on_after_a_loss"),
		},
		{
			name:   "a loss waits for the instance to finish",
			rule:   "the instance ends before the lease can be another's",
			edits:  in(dir+"tenure.go", "m.enter(Stopping)\n\t\tm.emit(Pause{Token: m.token, Lost: true})\n\t\tm.kill()", "m.stop()"),
			killer: killer{pkg: top, run: "^TestScenario_AStubbornInstanceDoesNotOutliveItsLease$"},
		},
		{
			name:   "keep a grant that came too late",
			rule:   "what is granted unasked is released",
			edits:  in(dir+"tenure.go", "m.emit(Release{ev.Token})\n\t\t}", "_ = ev\n\t\t}"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "host although not oldest any more when the grant comes",
			rule:   "a grant is for the instance only if it is still wanted",
			edits:  in(dir+"tenure.go", "if !m.wanted() {\n\t\tm.release()", "if m.closing {\n\t\tm.release()"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "a second attempt beside one that is being cancelled",
			rule:   "there is one attempt to acquire at a time",
			edits:  in(dir+"machine.go", "m.enter(Cancelling)\n\tm.emit(Cancel{m.attempt})", "m.emit(Cancel{m.attempt})\n\tm.enter(Younger)"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "host again after leaving",
			rule:   "who has left never hosts again",
			edits:  in(dir+"machine.go", "func (m *Machine) over() bool { return m.closing || m.ring.removed }", "func (m *Machine) over() bool { return m.closing }"),
			killer: golden(pkg, "removed"),
		},
		{
			name:   "a route believes a host of an older tenure",
			rule:   "a tenure with a smaller token is over, whatever its host believes",
			edits:  in(dir+"route.go", "|| r.host.known() && ev.Token < r.token {", "{"),
			killer: golden(pkg, "route_.*"),
		},
		{
			name:   "no bound of hops",
			rule:   "a message is passed on a bounded number of times",
			edits:  in("singleton/entry.go", "if n < 0 || n >= maxHops {", "if n < 0 {"),
			killer: killer{pkg: top, run: "TestHops_AreBounded"},
		},
		{
			name:   "no bound of what is kept for an instance",
			rule:   "everything is bounded; the newest are refused and counted",
			edits:  in("internal/stash/stash.go", "if s.Len() >= s.limit {", "if false {"),
			killer: killer{pkg: top, run: "TestBuffer_NewestAreRefusedAndCounted"},
		},
		{
			name:   "abstain although nobody else may host",
			rule:   "the last that can goes on trying",
			edits:  in(dir+"abstain.go", "if m.ring.others() && !m.over() {", "if !m.over() {"),
			killer: golden(pkg, "abstain_alone"),
		},
		{
			name:   "a silent store keeps the oldest trying",
			rule:   "who cannot host says so",
			edits:  in(dir+"tenure.go", "must not spin\n\t\tm.silence()", "must not spin"),
			killer: liveness,
		},
		{
			name:   "an abstention is said once",
			rule:   "words may be lost",
			edits:  in(dir+"abstain.go", "a.tell = m.now.Add(m.cfg.Repeat)\n\t\tm.emit(TellAbstain{a.seq, m.cfg.Abstain, a.failing})", "a.tell = time.Time{}\n\t\tm.emit(TellAbstain{a.seq, m.cfg.Abstain, a.failing})"),
			killer: liveness,
		},
		{
			name:   "an older word on abstaining counts",
			rule:   "of two words of one member the one with the larger sequence counts",
			edits:  in(dir+"ring.go", "case ev.Seq < a.seq:", "case false:"),
			killer: golden(pkg, "abstain_others"),
		},
		{
			name:   "a word on abstaining is believed for as long as it says",
			rule:   "everything from a peer is bounded",
			edits:  in(dir+"ring.go", "r.now.Add(min(ev.For, longestAbsence))", "r.now.Add(max(ev.For, longestAbsence))"),
			killer: golden(pkg, "abstain_others"),
		},
		{
			name:   "an instance is taken back as soon as the store answers",
			rule:   "no flapping for a store that comes and goes",
			edits:  in(dir+"abstain.go", "return !back.IsZero() && !m.now.Before(back)", "return !back.IsZero()"),
			killer: golden(pkg, "abstain_store"),
		},
		{
			name:   "an instance behind a shut gate has as long as any other",
			rule:   "a shut gate stops the instance within Hurry",
			edits:  in(dir+"abstain.go", "m.hurry()\n\t\tm.abstain()", "m.abstain()"),
			killer: sim,
		},
		{
			name:   "a wait that has passed is wanted again and again",
			rule:   "a tick that was had is not wanted again",
			edits:  in(dir+"machine.go", "if m.passed() {\n\t\tm.due = time.Time{}\n\t}", ""),
			killer: sim,
		},
		{
			name:   "a host where instances fail keeps the instance",
			rule:   "after Tries failures in a row the next oldest hosts",
			edits:  in(dir+"tenure.go", "m.failures >= m.cfg.Tries && m.ring.others()", "false && m.ring.others()"),
			killer: liveness,
		},
		{
			name:   "a member where instances failed takes the instance back",
			rule:   "an instance is not moved to where it fails while it runs elsewhere",
			edits:  in(dir+"abstain.go", "case !a.faulty:\n\t\treturn a.able", "case !false:\n\t\treturn a.able"),
			killer: golden(pkg, "failing"),
		},
		{
			name:   "nobody is told that instances fail at the last member",
			rule:   "members where instances fail take turns",
			edits:  in(dir+"tenure.go", "return hosting && m.failures", "return false && hosting && m.failures"),
			killer: liveness,
		},
		{
			name:   "the last member steps aside when instances fail",
			rule:   "the last that can goes on trying",
			edits:  in(dir+"tenure.go", "m.failures >= m.cfg.Tries && m.ring.others() && !m.over()", "m.failures >= m.cfg.Tries && !m.over()"),
			killer: golden(pkg, "failing_alone"),
		},
		{
			name:   "an instance that has panicked is not awaited",
			rule:   "a tenure is released only when its instance has terminated",
			edits:  in(dir+"tenure.go", "\tm.broken = false\n\tm.enter(Stopping)", "\tm.release()\n\treturn\n\tm.enter(Stopping)"),
			killer: sim,
		},
		{
			name:   "a state is taken over although a tenure was in between",
			rule:   "a state that is taken over is never stale",
			edits:  in("singleton/warm.go", "if s == nil || coordination.Token(s.Token) != grant.Previous() {", "if s == nil {"),
			killer: killer{pkg: top, run: "^TestWarm_StateOfAnEarlierTenureIsNotTakenOver$"},
		},
		{
			name:   "the lease is released before the next host has the state",
			rule:   "the state is there before the next tenure begins",
			edits:  in("singleton/tenancy.go", "if given != nil {", "if false {"),
			killer: killer{pkg: top, run: "^TestWarm_StatePassesInAPlannedMove$"},
		},
		{
			name:   "host as soon as it is up",
			rule:   "members that start together make the instance once",
			edits:  in(dir+"machine.go", "return m.elected() && m.seated }", "return m.elected() }"),
			killer: killer{pkg: top, run: "TestStart_TheInstanceIsMadeOnceAndDoesNotMove"},
		},
		{
			name:   "an Ask to a dropped host waits for its context",
			rule:   "what gets no answer is told",
			edits:  in(dir+"route.go", "r.emit(Orphaned{r.last})", ""),
			killer: killer{pkg: top, run: "TestAsk_ToAKilledHostIsUnknownWhenItIsDropped"},
		},
		{
			name:   "an Ask is given up in a planned move",
			rule:   "nothing is lost in a planned move",
			edits:  in(dir+"route.go", "if !left {", "if !left || left {"),
			killer: golden(pkg, "route_orphans"),
		},
		{
			name:   "a Singleton keeps the life that has ended",
			rule:   "nothing keeps an actor system that has ended",
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
