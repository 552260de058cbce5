package main

const (
	replCore = "./distributeddata/internal/core"
)

func scenario(test string) killer { return killer{pkg: replCore, run: "^" + test + "$"} }

// histories runs the given number of seeded histories.
func histories(seeds string) killer {
	return killer{pkg: replCore, run: "^TestHistories$", args: "-whole -seeds=" + seeds}
}

// saved runs one history that failed before.
func saved(pkg, name string) killer {
	return killer{pkg: pkg, run: "^TestSavedHistories$/^" + name + "$"}
}

// replication are bugs of the replication protocol. Rules in brackets are those of
// docs/replication.md.
func replication() []mutant {
	return []mutant{
		{
			name: "acknowledge before the merge",
			rule: "an acknowledgement describes applied state only [R24]",
			edits: []edit{
				{"distributeddata", "!h.counts() || h.Seen().Get(p.replica) < p.owed {", "!h.counts() {"},
				{"distributeddata", "p.owed = 0\n\t\th.sendAck(p)", "n := p.owed\n\t\tp.owed = 0\n\t\th.send(p, wire.ReplicatorAck, encodeAck(n, h.counts(), 0, 0))"},
			},
			killer: scenario("TestAck_NotFromTheWindow"),
		},
		{
			name:   "keep the changes of a refused update in the open event",
			rule:   "an update that returns an error changes nothing [R5]",
			edits:  in("distributeddata", "return 0, err\n\t}\n\tsize = h.merge(t)", "return h.merge(t), err\n\t}\n\tsize = h.merge(t)"),
			killer: scenario("TestQuiet_RefusedOneLeavesNoTraceInTheOthersEvent"),
		},
		{
			name:   "each event of a commit reserves room for the keys of all",
			rule:   "the memory of a burst grows with its keys, not with their square [R11]",
			edits:  in("distributeddata", "if e.Keys == nil && last == 0 {", "if e.Keys == nil {"),
			killer: scenario("TestOpen_EventsOfABurstTakeRoomForTheirOwnKeys"),
		},
		{
			name:   "send only the last update of an event",
			rule:   "an event contains the effects of all its updates [R5]",
			edits:  in("distributeddata", "if !w.was.Same(w.base) {", "if false {"),
			killer: scenario("TestQuiet_NobodySeesAnEventThatGoesOn"),
		},
		{
			name:   "answer a caller while the event stays open",
			rule:   "an update with a waiting caller ends the event [R5]",
			edits:  in("distributeddata", "return !more || wait < 0", "return wait < 0"),
			killer: scenario("TestQuiet_NobodySeesAnEventThatGoesOn"),
		},
		{
			name:   "answer an update before it is committed",
			rule:   "an answer says that readers see the update [R11]",
			edits:  in("distributeddata", "\tcase err == nil:\n\t\tu.n = c.history.Take()", "\tcase err == nil:\n\t\tu.n = c.history.Take()\n\t\tc.calls().startWrite(u)\n\t\treturn"),
			killer: scenario("TestOpen_AnswersWaitForTheCommit"),
		},
		{
			name:   "give up answered updates whose commit panics twice",
			rule:   "an update at Local that has been answered is lost only with the process [R12]",
			edits:  in("distributeddata", "if c.history.Promised() {", "if false {"),
			killer: scenario("TestDirect_AnAnsweredUpdateIsNeverGivenUp"),
		},
		{
			name:   "an update that is read at once joins the open events of a step",
			rule:   "a value never claims to have seen an event whose other entries are not shown [R12]",
			edits:  in("distributeddata", "c.members.sealed || c.history.Hidden() ||", "c.members.sealed ||"),
			killer: scenario("TestDirect_NeverJoinsWhatReadersMustNotSee"),
		},
		{
			name:   "a reader does not see an open entry",
			rule:   "readers of a member see its updates at Local at once [R12]",
			edits:  in("distributeddata", "return f.mu.entries[key]", "return nil"),
			killer: killer{pkg: "./distributeddata", run: "^TestFront_ReadersSeeAnUpdateAtOnce$"},
		},
		{
			name:   "answer a rejected update before those that came before it",
			rule:   "answers are given in the order of the updates [R11]",
			edits:  in("distributeddata", "c.answer(ev, err)\n\t\treturn", "c.emit(Done{ID: ev.ID, Err: err})\n\t\treturn"),
			killer: scenario("TestOpen_ARejectedUpdateIsAnsweredInTurn"),
		},
		{
			name:   "let an answer wait for as long as others follow",
			rule:   "an answer waits for other updates for a millisecond at most [R11]",
			edits:  in("distributeddata", "wait >= openPause ||", ""),
			killer: scenario("TestOpen_AnswersDoNotWaitForLong"),
		},
		{
			name:   "use the numbers of updates again that cancelled each other out",
			rule:   "no two answers name different events by one number [R11]",
			edits:  in("distributeddata", "case after.Len() > 0:", "case after.Len() > 0 && some:"),
			killer: scenario("TestOpen_EveryAnswerHasAnEventOfItsOwn"),
		},
		{
			name:   "forget that an update has seen those before it that are open",
			rule:   "an answer names the events that the update has seen [R11]",
			edits:  in("distributeddata", "\tif o.taken == 0 {\n\t\treturn o.base", "\tif o.from.N+1 > 0 {\n\t\treturn o.base"),
			killer: scenario("TestOpen_EveryAnswerHasAnEventOfItsOwn"),
		},
		{
			name:   "give the atoms of all open events to the last one",
			rule:   "an atom belongs to the event that added it [R11]",
			edits:  in("distributeddata", "return int(a.N - first)", "return last + int(first-first)"),
			killer: scenario("TestOpen_AtomsBelongToTheEventsThatAddedThem"),
		},
		{
			name:   "hash an open event without those committed with it",
			rule:   "events that are committed together are common only together [R11]",
			edits:  in("distributeddata", "EventHash(o.chain+(n-i)*apart)|1", "EventHash(min(n-i, 1)*i*apart+(1-min(n-i, 1))*o.chain)|1"),
			killer: scenario("TestOpen_HashesTellApartWhatWasCommittedTogether"),
		},
		{
			name:   "apply a push although some of its events were applied before",
			rule:   "a push omits atoms that one of its events added and a later one removed [R9]",
			edits:  in("distributeddata", "return d.Base.Get(d.Origin) < n && n < d.Head.Get(d.Origin)", "return n == 0 && n > 0"),
			killer: scenario("TestPush_OfWhichSomeIsThereIsOfNoUse"),
		},
		{
			name:   "omit the removal of atoms that were pushed before",
			rule:   "a push omits atoms that one of its events added and a later one removed [R9]",
			edits:  in("distributeddata", "a.Replica == w.own && a.N > w.since ||", "a.Replica == w.own ||"),
			killer: scenario("TestPush_WhatCameAndWentDoesNotTravel"),
		},
		{
			name:   "let an add tell the removal of another replica's atom",
			rule:   "an add tells the removal of its origin's atom at its path [R10]",
			edits:  in("distributeddata", "a.Path == path && a.Replica == w.own && a.N <= w.since", "a.Path == path && a.N <= w.since"),
			killer: scenario("TestCodec_PushesTellKeysAndRemovalsByOthers"),
		},
		{
			name:   "share the start of the last key of the push before",
			rule:   "a push tells the start of a key by the key before, in the same push [R10]",
			edits:  in("distributeddata", "\tw.key = \"\"\n", ""),
			killer: scenario("TestCodec_PushesTellKeysAndRemovalsByOthers"),
		},
		{
			name:   "share the start of a key that a push has left out",
			rule:   "a push tells the start of a key by the key before, in the same push [R10]",
			edits:  in("distributeddata", "\t\t\tw.key = k.Key\n\t\t}\n", "\t\t}\n\t\tw.key = k.Key\n"),
			killer: scenario("TestCodec_PushesTellKeysAndRemovalsByOthers"),
		},
		{
			name:   "let a call that needs other replicas wait for the next push",
			rule:   "a push waits only if no call waits for other replicas [R9]",
			edits:  in("distributeddata", "if hurries || since < 0", "if since < 0"),
			killer: scenario("TestPush_PausesUnderLoad"),
		},
		{
			name:   "push at once however many pushes the calls wait for",
			rule:   "calls share a push while two are on their way [R9]",
			edits:  in("distributeddata", "last > o.pushed && first > o.from", "last > o.pushed && first >= 0"),
			killer: scenario("TestPush_CallsShareOneWhileTwoAreOnTheirWay"),
		},
		{
			name:   "let a call wait while one push is on its way",
			rule:   "calls share a push while two are on their way [R9]",
			edits:  in("distributeddata", "first > o.from", "first > o.pushed"),
			killer: scenario("TestPush_CallsShareOneWhileTwoAreOnTheirWay"),
		},
		{
			name:   "push when an acknowledgement arrives",
			rule:   "an acknowledgement does not end the pause [R9]",
			edits:  in("distributeddata", "wire.ReplicatorAck &&\n\t\t\tc.now.Before(c.outbox.due(c.now, &c.waits, c.peers))", "wire.ReplicatorAck && false"),
			killer: scenario("TestPush_PausesUnderLoad"),
		},
		{
			name:   "push as soon as one member has acknowledged the last push",
			rule:   "a push after a small one waits for all acknowledgements [R9]",
			edits:  in("distributeddata", "return slices.ContainsFunc(ps, func(p *peer) bool { return p.inFlight > 0 })", "return !slices.ContainsFunc(ps, func(p *peer) bool { return p.inFlight == 0 })"),
			killer: scenario("TestPush_FollowsAnAcknowledgedOne"),
		},
		{
			name:   "push as soon as a burst is acknowledged",
			rule:   "a push after a burst waits a millisecond [R9]",
			edits:  in("distributeddata", "o.few = events <= Few", "o.few = true"),
			killer: scenario("TestPush_PausesUnderLoad"),
		},
		{
			name:   "a member that is alone acts after each update",
			rule:   "a push to nobody is followed by a pause [R9]",
			edits:  in("distributeddata", "o.at, o.few, o.from = now, false, from", "o.at, o.few, o.from = now, true, from"),
			killer: scenario("TestPush_ToNobodyPauses"),
		},
		{
			name:   "record that a push follows itself",
			rule:   "a push names the events that no other named event follows [R8]",
			edits:  in("distributeddata", "c.outbox.Applied(d.Base)", "c.outbox.Applied(d.Head)"),
			killer: scenario("TestPush_NamesTheNearestEventsAlone"),
		},
		{
			name:   "name all events that were applied since the last push",
			rule:   "a push names the events that no other named event follows [R8]",
			edits:  in("distributeddata", "if !o.implied.Covers(e) {", "if true {"),
			killer: scenario("TestPush_NamesTheNearestEventsAlone"),
		},
		{
			name:   "send every new vector to every member",
			rule:   "heartbeats send a digest, since most members have seen the same events [R25]",
			edits:  in("distributeddata", "c.herald().glance(c.peers[c.rhythm.turn%len(c.peers)], c.rhythm.unlike)", "c.herald().sendBeat(c.peers[c.rhythm.turn%len(c.peers)])"),
			killer: scenario("TestBeat_AnUpdateIsNotFollowedByTheVectorToEverybody"),
		},
		{
			name:   "keep sending digests that other members do not know",
			rule:   "a member that was asked for its vector sends it for a heartbeat interval [R25]",
			edits:  in("distributeddata", "\t\tc.rhythm.unlike = p.remindAt\n", ""),
			killer: scenario("TestBeat_WhoHasNotSeenTheSameAsks"),
		},
		{
			name:   "do not answer a heartbeat of a member that lacks events",
			rule:   "a replica answers the heartbeat of a member that lacks events [R25]",
			edits:  in("distributeddata", "c.herald().remind(p, v)\n", ""),
			killer: scenario("TestBeat_WhoIsKnownToLackSomethingIsTold"),
		},
		{
			name:   "wait for the next heartbeat after an answer",
			rule:   "a replica sends heartbeats soon after it has applied an answer [R25]",
			edits:  in("distributeddata", "c.rhythm.hasten(c.now, c.cfg.Grace)\n", ""),
			killer: scenario("TestNumbers_ConvergenceAfterAPartition"),
		},
		{
			name:   "combine the parts of two answers",
			rule:   "a replica applies the parts of one answer per request [R20]",
			edits:  in("distributeddata", "return r.answer == answer", "return true"),
			killer: scenario("TestRequest_PartsOfTwoAnswersDoNotMix"),
		},
		{
			name:   "apply a push without its causes",
			rule:   "a delta is applied when its base is covered [R7]",
			edits:  in("distributeddata", "case d.Base.Leq(c.Seen()):", "case d.Base.Get(from.replica) <= c.Seen().Get(from.replica):"),
			killer: scenario("TestPush_CausesOfOtherReplicasComeFirst"),
		},
		{
			name:   "apply waiting pushes without their causes",
			rule:   "a delta is applied when its base is covered [R7]",
			edits:  in("distributeddata", "func(o waitingPush) bool { return o.d.Base.Leq(c.Seen()) })", "func(waitingPush) bool { return true })"),
			killer: scenario("TestPush_CausesOfOtherReplicasComeFirst"),
		},
		{
			name:   "apply covered events again",
			rule:   "a covered event was applied, or its effects were removed since [R7]",
			edits:  in("distributeddata", "fresh := d.beyond(h.seen)", "fresh := d.Events"),
			killer: scenario("TestRepair_WhatIsCoveredIsNotAppliedAgain"),
		},
		{
			name:   "apply atoms that are marked gone as live ones",
			rule:   "an added atom that is no longer live is marked gone [R17]",
			edits:  in("distributeddata", "if !e.Gone[i][j] {", "if j >= 0 {"),
			killer: histories("300"),
		},
		{
			name:   "cut the log where an answer continues",
			rule:   "the log is kept from the state of an answer on [R18]",
			edits:  in("distributeddata", "n = min(n, v.Get(d.Replica))", "_ = v"),
			killer: killer{pkg: "./distributeddata/internal/history", run: "^TestTrim_CutsWhatAllHaveAndThenTheLargestPart$"},
		},
		{
			name:   "apply a push before the events that it follows",
			rule:   "a push is applied after all events that it follows [R7]: causal order",
			edits:  in("distributeddata", "case d.Base.Leq(c.Seen()):\n\t\tc.apply(d)", "case true:\n\t\tc.apply(d)"),
			killer: histories("10"),
		},
		{
			name:   "name at most one cause of a push",
			rule:   "a push names all events that no other named event follows [R8]: causal order",
			edits:  in("distributeddata", "if !o.implied.Covers(e) {", "if !o.implied.Covers(e) && len(follows) < 2 {"),
			killer: histories("10"),
		},
		{
			name:   "do not install the last key of an update locally",
			rule:   "an update is installed in one step [R5]: read your writes",
			edits:  in("distributeddata", "\t\td.put(w.key, w.next)\n", "\t\tif w != work[len(work)-1] {\n\t\t\td.put(w.key, w.next)\n\t\t}\n"),
			killer: histories("10"),
		},
		{
			name:   "replace the keys by those of a received state",
			rule:   "a join keeps the atoms that only this replica has seen [R19]: monotonic reads",
			edits:  in("distributeddata", "d.set(key, a, held(key, both, a))", "d.set(key, a, held(key, b.Store, a))"),
			killer: histories("10"),
		},
		{
			name:   "forget the floor after a snapshot",
			rule:   "the log does not contain events that arrived in a snapshot [R19]",
			edits:  in("distributeddata", "o = &originLog{floor: l.floor.Get(r)}", "o = &originLog{}"),
			killer: scenario("TestBulk_FloorRisesWithTheJoin"),
		},
		{
			name: "answer a duplicated request twice",
			rule: "the parts of two answers do not mix",
			edits: []edit{
				{"distributeddata", "a.answer.id == id:", "a.answer.id == 0:"},
				{"distributeddata", "if id <= a.request && ", "if id < a.request && "},
			},
			killer: scenario("TestRequest_DoubledIsAnsweredOnce"),
		},
		{
			name:   "apply parts of a snapshot before all have arrived",
			rule:   "an answer is applied in one step [R20]",
			edits:  in("distributeddata", "more = r.last >= 0 && r.next > r.last, ", "more = r.next > 0, "),
			killer: scenario("TestBulk_ThirdPartyPushAndLocalUpdateDuringTheTransfer"),
		},
		{
			name: "complete an answer from keys that have changed since",
			rule: "keys that an answer omits are taken from the copy that was compared [R22]",
			edits: []edit{
				{"distributeddata", "s.state(r.copied)", "s.state(c.history.State())"},
				{"distributeddata", "if out.Sum != s.head.sum {", "if false {"},
			},
			killer: scenario("TestBulk_SkippedKeyChangesBeforeAdoption"),
		},
		{
			name:   "accept a state that does not match its fingerprint",
			rule:   "the fingerprint verifies a state that was assembled from parts [R22]",
			edits:  in("distributeddata", "if out.Sum != s.head.sum {", "if false {"),
			killer: scenario("TestBulk_WrongComparisonIsNoticed"),
		},
		{
			name: "push without naming the events that it follows",
			rule: "a push names the events of other origins that are new since the last push [R7]",
			edits: []edit{
				{"distributeddata", "if o.told.Len() > 0 {", "if true {"},
				{"distributeddata", "follows = append(follows, e)", "_ = e"},
			},
			killer: scenario("TestPush_CausesOfOtherReplicasComeFirst"),
		},
		{
			name:   "drop a mark without the owner's events",
			rule:   "a mark is dropped when the owner has seen the reset and this replica has all earlier events of the owner [R15]",
			edits:  in("distributeddata", "p.vector().Covers(m.By) && v.history.Seen().Get(owner) >= p.vector().Get(owner)", "p.vector().Covers(m.By)"),
			killer: scenario("TestMark_StaysUntilTheOwnersEventsAreHere"),
		},
		{
			name:   "drop the mark of a departed replica while a member is away",
			rule:   "the mark of a departed replica is void when no member can have an event of it that is not here [R15]",
			edits:  in("distributeddata", "return v.departed(owner) && v.allCover(m.By, owner)", "return v.departed(owner)"),
			killer: scenario("TestMark_OfADepartedReplicaStaysWhileAMemberIsAway"),
		},
		{
			name:   "drop the mark of a replica that only others see",
			rule:   "a replica whose events arrive may run, although it is out of view [R15]",
			edits:  in("distributeddata", "f.arrivals.before.Get(r) == n", "true"),
			killer: scenario("TestMark_OfAReplicaThatOnlyOthersSee"),
		},
		{
			name:   "leave when others have finished the removal",
			rule:   "what only a removed member has is handed over [M5]",
			edits:  in("distributeddata", "r.leaves && c.history.Uncopied() > 0 && c.members.heirs(c.peers) > 0", "false"),
			killer: scenario("TestSavedHistories_OfRecords"),
		},
		{
			name: "leave out the disk of a member that is going after a loss of power",
			rule: "a process of a member that is going, with its whole disk, announces its number [M5]",
			edits: in("distributeddata", "(own.Inc == c.members.inc || !c.disk.keeps())",
				"(own.Inc == c.members.inc || true)"),
			killer: scenario("TestDisk_OfAMemberThatWasLeavingCounts"),
		},
		{
			name:   "drop the mark of a member that has gone and may come back",
			rule:   "the mark of a member that has gone without handing over stays [R15]",
			edits:  in("distributeddata", "(at.Rank != quorum.Gone || v.members.MayReturn(at))", "at.Rank != quorum.Gone"),
			killer: scenario("TestMark_OfAForgottenMemberThatComesBack"),
		},
		{
			name:   "let a member that leaves go on with updates after it has handed over",
			rule:   "a member that has handed over does nothing else [R15]",
			edits:  in("distributeddata", "if c.members.sealed {", "if false {"),
			killer: scenario("TestDrain_NoUpdateAfterTheHandover"),
		},
		{
			name:   "keep the marks of departed replicas",
			rule:   "a deleted counter leaves nothing [R15]",
			edits:  in("distributeddata", "return v.departed(owner) && v.allCover(m.By, owner)", "return false"),
			killer: scenario("TestMark_DeletedCountersOfDepartedReplicasLeaveNothing"),
		},
		{
			name:   "drop a mark before the owner has seen the reset",
			rule:   "a mark is dropped when the owner has seen the reset and this replica has all earlier events of the owner [R15]",
			edits:  in("distributeddata", "p.vector().Covers(m.By) && v.history.Seen().Get(owner) >= p.vector().Get(owner)", "v.history.Seen().Get(owner) >= p.vector().Get(owner)"),
			killer: histories("300"),
		},
		{
			name:   "send an event as one record of any size",
			rule:   "an accepted update can be transferred: a large event is sent in pieces [R21]",
			edits:  in("distributeddata", "s.enc.event(e, s.keys, s.place, size)", "s.enc.event(e, s.keys, s.place, 1<<40)"),
			killer: scenario("TestTransfer_LargeEventsCross"),
		},
		{
			name:   "send all atoms of a path in one record",
			rule:   "an accepted update can be transferred: a record exceeds a part by at most one atom [R21]",
			edits:  in("distributeddata", "if path == from.path && l.Replica <= from.after {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tif len(kc)-start >= limit {", "if path == from.path && l.Replica <= from.after {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tif next.path != path && len(kc)-start >= limit {"),
			killer: scenario("TestTransfer_LargeEventsCross"),
		},
		{
			name:   "accept an update that no receiver accepts",
			rule:   "an update that a receiver would refuse changes nothing [R21]",
			edits:  in("distributeddata", "if c.Empty() {", "if true {"),
			killer: scenario("TestTransfer_WhatNoReceiverTakesIsRefused"),
		},
		{
			name:   "report only keys whose atoms changed",
			rule:   "subscribers are notified when a mark changes a value [R42]",
			edits:  in("internal", "same = same && plus == otherPlus && minus == otherMinus", "same = same || plus == otherPlus && minus == otherMinus"),
			killer: scenario("TestChanged_AResetThatArrivesAsAMarkAlone"),
		},
		{
			name:   "keep pushes whose causes are lost forever",
			rule:   "a push leaves the window when the events that it follows are no longer in transit [R43]",
			edits:  in("distributeddata", "return !now.Before(o.until)", "return false"),
			killer: scenario("TestWindow_PushesWhoseCausesDiedLeave"),
		},
	}
}
