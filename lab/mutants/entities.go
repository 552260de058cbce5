package main

// entities are bugs of entities: how they run, end, and are remembered.
func entities() []mutant {
	return []mutant{
		{
			name:   "middleware that panics while a grain stops keeps its shard",
			rule:   "an incarnation ends whatever the application does while it stops",
			edits:  in("sharding", "if m.stopped && m.broke(message) {", "if false && m.broke(message) {"),
			killer: killer{pkg: "./sharding/grains", run: "^TestGrain_MiddlewareThatPanicsKeepsNoShard$"},
		},
		{
			name: "a message in a mailbox is not checked against the tenure",
			rule: "each message is checked against the tenure before it is handled [S2]",
			edits: []edit{
				{"sharding", "batch.len() > 0 && m.incarnation.tenure.Check() == nil {", "batch.len() > 0 {"},
				{"sharding", "case m.incarnation.tenure.Check() == nil:\n\t\t\tp, ok", "case true:\n\t\t\tp, ok"},
			},
			killer: killer{pkg: "./sharding", run: "^TestMailbox_HandlesNothingWhenTheTenureIsOver$"},
		},
		{
			name:   "messages go to an entity that was told to stop",
			rule:   "messages after the stop request wait for the next incarnation [S14]",
			edits:  in("sharding", "e.state == running && !s.stoppedNow", "(e.state == running || e.state == ending) && !s.stoppedNow"),
			killer: plannedMoves,
		},
		{
			name:   "the next incarnation of an entity does not wait for the last one",
			rule:   "an entity is started again when it has terminated [S14b]",
			edits:  in("sharding", "\tdefault:\n\t\ts.wait(b)\n", "\tdefault:\n\t\ts.wait(b)\n\t\tif e.state == ending {\n\t\t\ts.start(e)\n\t\t}\n"),
			killer: plannedMoves,
		},
		{
			name:   "messages for an ending entity are dropped when its shard is given up",
			rule:   "a hand-off drains waiting messages [S15]",
			edits:  in("sharding", "\tcase len(s.waiting[e.id]) > 0:\n\t\ts.start(e)\n\tdefault:\n\t\ts.remove(e)\n\t}\n}\n\nfunc (s *Slot) backOff", "\tcase len(s.waiting[e.id]) > 0 && !s.stopping:\n\t\ts.start(e)\n\tdefault:\n\t\ts.remove(e)\n\t}\n}\n\nfunc (s *Slot) backOff"),
			killer: plannedMoves,
		},
		{
			name:   "an entity that backs off is forgotten when its shard is given up",
			rule:   "a hand-off drains waiting messages [S15b]",
			edits:  in("sharding", "\t\tcase e.state == ending, e.state == unknown:\n\t\tcase len(s.waiting[e.id]) > 0:", "\t\tcase e.state == ending, e.state == unknown:\n\t\tcase false:"),
			killer: killer{pkg: shardCore, run: "^TestSlot_WhatIsLeftComesFirst$"},
		},
		{
			name:   "unhandled messages of an entity that stops by itself are dropped",
			rule:   "an entity that stops leaves its mailbox to the next incarnation [S22]",
			edits:  in("sharding", "slices.Concat(ev.Left, s.waiting[e.id])", "slices.Concat(s.waiting[e.id])"),
			killer: plannedMoves,
		},
		{
			name:   "messages that arrived while an entity was ending precede its unhandled messages",
			rule:   "messages of one sender to one entity are handled in order [S22b]",
			edits:  in("sharding", "slices.Concat(ev.Left, s.waiting[e.id])", "slices.Concat(s.waiting[e.id], ev.Left)"),
			killer: killer{pkg: shardCore, run: "^TestSlot_WhatIsLeftComesFirst$"},
		},
		{
			name:   "more entities run than the limit allows",
			rule:   "above the limit, the least recently used entities are passivated [S34]",
			edits:  in("sharding", "\t\ts.stop(e)\n\t}\n\ts.trim()\n}", "\t\ts.stop(e)\n\t}\n}"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_OfALimit$"},
		},
		{
			name:   "the most recently used entity is passivated",
			rule:   "above the limit, the least recently used entities are passivated [S34b]",
			edits:  in("sharding", "\t\ts.stop(s.used.last)\n\t}\n}\n\nfunc (s *Slot) stop(", "\t\ts.stop(s.used.first.next)\n\t}\n}\n\nfunc (s *Slot) stop("),
			killer: killer{pkg: shardCore, run: "^TestSlot_PassivatesTheLeastRecentlyUsed$"},
		},
		{
			name:   "a lowered limit takes effect only with the next entity",
			rule:   "above the limit, the least recently used entities are passivated [S34c]",
			edits:  in("sharding", "\t\ts.limit = ev.N\n\t\ts.trim()\n", "\t\ts.limit = ev.N\n"),
			killer: killer{pkg: shardCore, run: "^TestSlot_PassivatesTheLeastRecentlyUsed$"},
		},
		{
			name:   "the first message does not wait until its entity is remembered",
			rule:   "an entity handles nothing before a majority remembers it [S16]",
			edits:  in("sharding", "case e == nil && (!s.cfg.Remember || s.known[b.ID]):", "case e == nil:"),
			killer: remembers,
		},
		{
			name:   "a new home starts remembered entities only when a message arrives",
			rule:   "remembered entities are started where their shard is [S16b]",
			edits:  in("sharding", "s.pending = ids\n\tif", "s.pending = nil\n\tif"),
			killer: killer{pkg: shardCore, run: "^TestSlot_KeepsWhatItRemembersRunning$"},
		},
		{
			name: "a new home starts the entities that its own replica remembers",
			rule: "a new home reads from a majority which entities are remembered [S16b]",
			edits: []edit{
				{"sharding", "r.data, distributeddata.Linearizable)", "r.data)"},
				{"sharding", "if len(ids)+len(former) == 0 {\n\t\treturn nil, nil", "if true {\n\t\treturn ids, nil"},
			},
			killer: killer{pkg: "./sharding", run: "^TestRemember_ANewHomeReadsAMajority$"},
		},
		{
			name:   "entities that another number of shards remembers are left there",
			rule:   "a shard takes its entities out of the sets of other numbers of shards [S16g]",
			edits:  in("sharding", "\tlook(all)\n", ""),
			killer: killer{pkg: "./sharding", run: "^TestRemember_SurvivesAnotherNumberOfShards$"},
		},
		{
			name:   "a new home does not add again which entities it has read",
			rule:   "a late removal of an earlier home forgets no entity that the new home runs [S16c]",
			edits:  in("sharding", "if len(ids)+len(former) == 0 {\n\t\treturn nil, nil", "if true {\n\t\treturn ids, nil"),
			killer: killer{pkg: "./sharding", run: "^TestRemember_ANewHomeAddsAgainWhatItHasRead$"},
		},
		{
			name:   "an entity that is not remembered yet handles messages when its shard is given up",
			rule:   "an entity handles nothing before a majority remembers it [S16c]",
			edits:  in("sharding", "case e.state == ending, e.state == unknown:", "case e.state == ending:"),
			killer: remembers,
		},
		{
			name:   "a remembered entity that stops by itself is not started again",
			rule:   "a remembered entity runs until it asks to be forgotten [S16d]",
			edits:  in("sharding", "again := (s.cfg.Remember && itself", "again := (false && itself"),
			killer: killer{pkg: shardCore, run: "^TestSlot_KeepsWhatItRemembersRunning$"},
		},
		{
			name:   "an entity that ends at each start is started again at once",
			rule:   "an entity that ends by itself without having handled a message backs off [S22c]",
			edits:  in("sharding", "ev.Failed || itself && !ev.Worked", "ev.Failed"),
			killer: killer{pkg: shardCore, run: "^TestSlot_AnEntityThatEndsAtEachStart$"},
		},
		{
			name:   "a worker that was asked to end is not started again",
			rule:   "a worker that is kept alive is started again after every end [S37]",
			edits:  in("sharding", "itself || s.cfg.Keep) && !s.stopping", "itself) && !s.stopping"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Daemons$", args: "-whole"},
		},
		{
			name:   "a worker can ask to be forgotten",
			rule:   "a worker that is kept alive is not forgotten [S37b]",
			edits:  in("sharding", "e.forget = ev.Forget && !s.cfg.Keep", "e.forget = ev.Forget"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Daemons$", args: "-whole"},
		},
		{
			name:   "each failed call for remembered entities is logged",
			rule:   "a member without a majority does not flood the log",
			edits:  in("sharding", "binding.recalls.Due(binding.clock.Now(), quiet)", "binding.recalls.Due(binding.clock.Now(), 0)"),
			killer: killer{pkg: "./sharding", run: "^TestLog_NoMajorityToRememberIsTwoLines$"},
		},
		{
			name:   "remembered entities are all started at once",
			rule:   "remembered entities are started at the pace of their member [S16e]",
			edits:  in("sharding", "if s.cfg.Pace == nil {", "if true {"),
			killer: killer{pkg: "./sharding", run: "^TestRecoverRate_EntitiesStartAtARate$"},
		},
		{
			name:   "only the first turn of a shard starts remembered entities",
			rule:   "remembered entities are started at the pace of their member [S16e]",
			edits:  in("sharding", "\t\te = next\n\t}\n\ts.resume()\n", "\t\te = next\n\t}\n"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Remembers$", args: "-whole"},
		},
		{
			name:   "each shard has a pace of its own",
			rule:   "remembered entities are started at the pace of their member [S16e]",
			edits:  in("sharding", "if p.next.After(at) {", "if false {"),
			killer: killer{pkg: shardCore, run: "^TestSlot_StartsWhatItRemembersAtAPace$"},
		},
		{
			name:   "a member starts entities of other shards that a store returns",
			rule:   "an entity runs in its own shard [S40]",
			edits:  in("sharding", "err = m.shard.owns(id)", "err = nil"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_ReturnsIdsThatCannotBe$"},
		},
		{
			name:   "a member starts entities of other shards that a peer names",
			rule:   "an entity runs in its own shard [S40]",
			edits:  in("sharding", "err != nil {\n\t\t\td = core.Data", "false {\n\t\t\td = core.Data"),
			killer: killer{pkg: "./sharding", run: "^TestReceiver_"},
		},
		{
			name:   "a store of remembered entities ignores tokens",
			rule:   "a store of remembered entities rejects calls of earlier tenures [S16f]",
			edits:  in("testkit", "if of.Token < c.last.Token ||", "if"),
			killer: killer{pkg: "./testkit/remembertest", run: "^TestMemory$"},
		},
		{
			name:   "calls of a store of remembered entities are not numbered",
			rule:   "a removal that timed out and takes effect late removes no entity [S16f]",
			edits:  in("sharding", "		m.of.Seq++\n", ""),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_LateRemovalLosesNoEntity$"},
		},
		{
			name:   "a store of remembered entities that ends its goroutine is not called again",
			rule:   "a RememberStore may fail in any way",
			edits:  in("sharding", "err = errors.New(\"it ended its goroutine\")", "_ = errors.New(\"\")"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_ThatFailsIsCalledAgain$"},
		},
		{
			name:   "an entity that ignores StopMessage keeps its shard forever",
			rule:   "entities are killed after HandOff [S23]",
			edits:  in("sharding", "s.stopNow()\n\t\t}\n\t}\n\ts.ask()", "}\n\t}\n\ts.ask()"),
			killer: killer{pkg: "./sharding", run: "^TestStopMessage_AnEntityThatNeverStopsIsStopped$"},
		},
		{
			name:   "an entity starts although its lease was lost while it was made",
			rule:   "an entity is alive once",
			edits:  in("sharding", "return false // the lease was lost meanwhile", "_ = 0"),
			killer: killer{pkg: "./sharding", run: "^TestStarted_NotWhenTheLeaseWasLostMeanwhile$"},
		},
		{
			name:   "an instance starts although its lease was lost while it was made",
			rule:   "at most one instance lives at a time",
			edits:  in("singleton", "if h.over() { // the lease", "if false { // the lease"),
			killer: killer{pkg: "./singleton", run: "^TestInstance_DoesNotStartAfterALossMeanwhile$"},
		},
		{
			name:   "a gated worker starts although its lease was lost while it was made",
			rule:   "at most one holder works at a time",
			edits:  in("coordination", "if w.grant.Check() != nil {", "if false {"),
			killer: killer{pkg: "./coordination", run: "^TestGated_AWorkerDoesNotStartAfterALossMeanwhile$"},
		},
	}
}
