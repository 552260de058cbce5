package main

// incarnations are bugs of steps that panic and of consecutive incarnations. Rules in brackets are
// those of docs/replication.md.
func incarnations() []mutant {
	return []mutant{
		{
			name:   "the last member after a crash misses the table of shards",
			rule:   "a member that holds only what is made anew has nothing to hand over",
			edits:  in("distributeddata", "s.done = c.history.Rebuilt()", "s.done = false"),
			killer: killer{pkg: "./distributeddata/internal/core", run: "^TestDrain_OfTheLastOneAfterACrash$"},
		},
		{
			name:   "the last member after a crash forgets a removal",
			rule:   "a removal is handed over like every other update",
			edits:  in("distributeddata", "h.lasts = h.lasts || slices.ContainsFunc(d.touched, lasting)", ""),
			killer: killer{pkg: "./distributeddata/internal/core", run: "^TestDrain_OfTheLastOneAfterACrash$"},
		},
		{
			name:   "miss the table of shards at the end",
			rule:   "what is made anew when it is lost need not be handed over [R29]",
			edits:  in("distributeddata", "if h.kept <= h.copied {", "if false {"),
			killer: scenario("TestRejoin_TheTableOfShardsIsNotMissed"),
		},
		{
			name:   "miss nothing that was written beside the table of shards",
			rule:   "an update of an application that no other member has is named at the end [R29]",
			edits:  in("distributeddata", "h.kept = h.Own() + h.open.events()", "h.kept = h.Own()"),
			killer: scenario("TestRejoin_TheTableOfShardsIsNotMissed"),
		},
		{
			name:   "an actor that is being spawned handles messages at once",
			rule:   "no message from a peer crashes the process",
			edits:  in("internal", "if !m.hold(&m.mu.user, message) {", "if true {"),
			killer: killer{pkg: "./internal/early", run: "^TestMailbox_HoldsBackWhatComesBeforeTheStart$"},
		},
		{
			name:   "a start goes on after the end of Run's context",
			rule:   "a stop does not wait for the start",
			edits:  in("node", "n.end = context.WithCancelCause(ctx)", "n.end = context.WithCancelCause(context.WithoutCancel(ctx))"),
			killer: killer{pkg: "./lab/noderun", run: "^TestRun_StopsDuringTheStart$"},
		},
		{
			name:   "log a message that was not sent as an everyday event",
			rule:   "a message that cannot be sent is logged as an error",
			edits:  in("node", "if unsendable(r) {", "if unsendable(r) && false {"),
			killer: killer{pkg: "./lab/members", run: "^TestRun_LogsMessagesThatCannotBeSentAsErrors$"},
		},
		{
			name:   "recover quietly from a panic in an effect",
			rule:   "a panic of this library's own code is logged, counted and part of the health",
			edits:  in("internal", "\tif !due {", "\tif !due || unlogged >= 0 {"),
			killer: killer{pkg: "./internal/shell", run: "TestCarryOut_APanicIsLoudAndTheRestIsCarriedOut"},
		},
		{
			name:   "a panic is not part of the health",
			rule:   "a panic of this library's own code is logged, counted and part of the health",
			edits:  in("internal", "lifecycle.OnCheck(system, \"panics\", e.Check)", "_ = lifecycle.OnCheck"),
			killer: killer{pkg: "./internal/bugs", run: "TestGuardian_StartsAgainForEverAndTellsTheHealth"},
		},
		{
			name:   "a subscriber that panics at a dead letter ends its sender",
			rule:   "a function of the application that panics ends no process",
			edits:  in("internal", "\tdefer contained(system, \"taking a message\", nil)\n\tsystem.Root.Send", "\tsystem.Root.Send"),
			killer: killer{pkg: "./internal/contain", run: "TestSend_ASubscriberMayPanic"},
		},
		{
			name:   "the health counts only members that were seen",
			rule:   "the health counts members as the rule of the majority does",
			edits:  in("node", "all = max(all, int(counted.Load()))", "_ = counted"),
			killer: killer{pkg: "./node", run: "^TestHealth_CountsMembersThatWereNeverSeen$"},
		},
		{
			name:   "name all of a thousand components that did not stop",
			rule:   "one fault of many components is one line, of a few names",
			edits:  in("internal", "if more := len(texts) - most; more > 1 {", "if more := len(texts) - most; more > 1 && more < 500 {"),
			killer: killer{pkg: "./internal/lifecycle", run: "^TestStop_OfThousandsOfComponentsSaysAFew$"},
		},
		{
			name:   "forget the errors of a phase that are not named",
			rule:   "an error that is cut in the text is matched all the same",
			edits:  in("internal", "func (m many) Unwrap() []error { return m }", "func (m many) Unwrap() []error { return m[:1] }"),
			killer: killer{pkg: "./internal/lifecycle", run: "^TestStop_OfThousandsOfComponentsSaysAFew$"},
		},
		{
			name:   "read what a host sends before it was asked",
			rule:   "a host that speaks another protocol is told apart from a silent one",
			edits:  in("node", "\t<-p.asked\n", ""),
			killer: killer{pkg: "./node/provider/automanaged", run: "TestRequest_OfAServerThatSpeaksFirstIsStrange"},
		},
		{
			name:   "a member that asks counts as silent",
			rule:   "a member that gets little processor time is not dropped",
			edits:  in("node", "if asked := h.asked(at.name, at.says.ID); asked", "if asked := at.since; asked"),
			killer: killer{pkg: "./node/provider/automanaged", run: "^TestServe_AMemberThatAsksIsNotSilent$"},
		},
		{
			name:   "wait for an effect that panicked",
			rule:   "a core does not wait for an effect that panicked",
			edits:  in("internal", "if s.cfg.Failed != nil {", "if s.cfg.Failed == nil {"),
			killer: killer{pkg: "./singleton", run: "TestPanic_InAnyEffectTheSingletonGoesOn"},
		},
		{
			name:   "keep a lease whose release panicked",
			rule:   "a core does not wait for an effect that panicked",
			edits:  in("sharding", "go func() { _, _ = yield(grant) }()\n\t\t}\n\t\tc.step", "_ = grant\n\t\t}\n\t\tc.step"),
			killer: killer{pkg: "./sharding", run: "TestPanic_InAnyEffectTheShardsGoOn"},
		},
		{
			name:   "leave the timer unset after a step that panicked",
			rule:   "after a step that panicked, a core is woken in time",
			edits:  in("internal", "s.stepping = false\n\t\ts.arm()", "s.stepping = false"),
			killer: killer{pkg: "./internal/shell", run: "TestStart_AfterAPanicTheCoreIsWokenInTime"},
		},
		{
			name:   "keep the grants of a session whose machine panicked",
			rule:   "a session with a lease in an unknown state holds nothing",
			edits:  in("coordination", "range l.leases {\n\t\tif d.grant != nil {\n\t\t\td.grant.finish(end)", "range l.leases {\n\t\tif d.grant != nil {\n\t\t\t_ = end"),
			killer: killer{pkg: "./coordination", run: "TestBroken_APanicInAStepEndsTheSession"},
		},
		{
			name:   "continue with events that were not installed",
			rule:   "a step that panicked has made a transition or has not [R41]",
			edits:  in("distributeddata", "\th.log.fit(h.seen)\n\to := &h.open", "\to := &h.open"),
			killer: scenario("TestResume_AnUpdateIsMadeOrNot"),
		},
		{
			name:   "commit the event of an interrupted step a second time",
			rule:   "a step that panicked has made a transition or has not [R41]",
			edits:  in("distributeddata", "h.seen.Covers(o.last) {", "false {"),
			killer: scenario("TestDirect_APanicOfTheCommitLosesNothing"),
		},
		{
			name:   "forget the pending calls when a step panics",
			rule:   "waiting calls end after a step that panicked [R41]",
			edits:  in("distributeddata", "\t\tif left[id] {\n", "\t\tif false {\n"),
			killer: scenario("TestResume_CallsUnderWayEnd"),
		},
		{
			name:   "do not notify subscribers of the changes of an interrupted step",
			rule:   "subscribers are notified of the changes of an interrupted step [R41]",
			edits:  in("distributeddata", "n.touched = append(n.touched, causal.Clone(key))", "_ = causal.Clone"),
			killer: scenario("TestResume_APushIsAppliedOnce"),
		},
		{
			name:   "an incarnation forgets the open event of the former incarnation",
			rule:   "the next incarnation holds all events of the former one [R40]",
			edits:  in("distributeddata", "c.endAgain() // c may have panicked\n\treturn c.successor(cfg)", "return c.successor(cfg)"),
			killer: scenario("TestRejoin_TheOpenEventIsKept"),
		},
		{
			name:   "no key is known of updates that the log has cut",
			rule:   "the error of Close names keys whose updates may be lost",
			edits:  in("distributeddata", "\t\th.keys.addedBeyond(cut, keys)\n", "\t\t_ = cut\n"),
			killer: killer{pkg: "./distributeddata", run: "TestClose_AloneForLongNamesTheKeys"},
		},
		{
			name:   "an incarnation starts with the former state but without its log",
			rule:   "the events of a former incarnation are served like those of any origin [R40]",
			edits:  in("distributeddata", "o.sum, o.log, o.marks", "o.sum, h.log, o.marks"),
			killer: scenario("TestRejoin_WritesMadeAloneReachTheOthers"),
		},
		{
			name:   "an incarnation keeps the replica id of the former incarnation",
			rule:   "every incarnation has its own replica id [R40]",
			edits:  in("distributeddata", "h.clock, h.hashes.heard = o.clock, o.hashes.heard", "h.clock, h.hashes.heard, h.me = o.clock, o.hashes.heard, o.me"),
			killer: scenario("TestRejoin_WritesMadeAloneReachTheOthers"),
		},
		{
			name:   "an incarnation that follows another one is ready at once",
			rule:   "an incarnation is refilled before it counts [R23, R40]",
			edits:  in("distributeddata", "n.history.Continue(&c.history)", "n.history.Continue(&c.history)\n\tn.members.ready = true"),
			killer: scenario("TestRejoin_CountsNowhereUntilRefilled"),
		},
		{
			name:   "leave without the events of former incarnations",
			rule:   "a leaving member also waits for the events of its former incarnations [R29, R40]",
			edits:  in("distributeddata", "leave{want: c.Seen(), forget: forget}", "leave{want: causal.Vector{}.Set(c.Replica(), c.history.Own()), forget: forget}"),
			killer: scenario("TestRejoin_DrainWaitsForEarlierIncarnations"),
		},
		{
			name:   "a replicator forgets the state of the ended incarnation",
			rule:   "the next incarnation holds all events of the former one [R40]",
			edits:  in("distributeddata", "r.mu.held = append(r.mu.held, what)", ""),
			killer: killer{pkg: "./distributeddata", run: "^TestRejoin_WritesMadeAloneReachTheOthers$"},
		},
		{
			name:   "start empty when the actor is restarted",
			rule:   "the replica outlives its actor [R41]",
			edits:  in("distributeddata", "func() actor.Actor { return a },\n", "func() actor.Actor { a = newReplica(l); return a },\n"),
			killer: killer{pkg: "./distributeddata", run: "^TestResume_WhateverAPanicInterrupts$"},
		},
		{
			name:   "drop messages that arrive before the replica runs",
			rule:   "a message to the PID is carried out or answered",
			edits:  in("distributeddata", "d.mu.waiting = append(d.mu.waiting, message)", ""),
			killer: killer{pkg: "./distributeddata", run: "^TestPID_MessagesBeforeTheStartWaitInOrder$"},
		},
		{
			name:   "stay down after user code has ended the goroutine",
			rule:   "functions of the application may panic or exit",
			edits:  in("distributeddata", "if !returned {\n\t\t\td.runs <- run", "if !returned && run == nil {\n\t\t\td.runs <- run"),
			killer: killer{pkg: "./distributeddata", run: "^TestModify_MayExit$"},
		},
		{
			name:   "a removed member waits for members that ignore it",
			rule:   "no member acknowledges anything to a removed member [R29]",
			edits:  in("distributeddata", "if a.view != nil && a.view.Removed {", "if false {"),
			killer: killer{pkg: "./distributeddata", run: "^TestClose_OfARemovedMemberTakesNoTime$"},
		},
	}
}
