package main

const (
	replDir  = "distributeddata/internal/core/"
	replCore = "./distributeddata/internal/core"
)

func scenario(test string) killer { return killer{pkg: replCore, run: "^" + test + "$"} }

// histories is so many seeded histories.
func histories(seeds string) killer {
	return killer{pkg: replCore, run: "^TestHistories$", args: "-whole -seeds=" + seeds}
}

// saved is one history that failed once.
func saved(pkg, name string) killer {
	return killer{pkg: pkg, run: "^TestSavedHistories$/^" + name + "$"}
}

// replication are bugs of the replication protocol. Rules in brackets are those of docs/replication.md.
func replication() []mutant {
	return []mutant{
		{
			name: "acknowledge before the merge",
			rule: "acknowledgements speak of applied state only [R18]",
			edits: []edit{
				{replDir + "receive.go", "!c.counts() || c.seen.Get(p.replica) < p.owed {", "!c.counts() {"},
				{replDir + "receive.go", "p.owed = 0\n\t\tc.sendAck(p, c.ack(p))", "n := p.owed\n\t\tp.owed = 0\n\t\tc.send(p, wire.ReplicatorAck, encodeAck(n, c.counts(), 0, nil))"},
			},
			killer: scenario("TestAck_NotFromTheWindow"),
		},
		{
			name:   "keep what a refused update did in the open event",
			rule:   "an error leaves everything as it was [R3]",
			edits:  in(replDir+"update.go", "c.emit(Done{ID: ev.ID, Err: err})\n\t\treturn", "c.emit(Done{ID: ev.ID, Err: err})"),
			killer: scenario("TestQuiet_RefusedOneLeavesNoTraceInTheOthersEvent"),
		},
		{
			name:   "send only the last update of an event",
			rule:   "an event is what all of its updates amount to [R3]",
			edits:  in(replDir+"update.go", "if !w.was.Same(w.base) {", "if false {"),
			killer: scenario("TestQuiet_NobodySeesAnEventThatGoesOn"),
		},
		{
			name:   "answer somebody while the event goes on",
			rule:   "an update that somebody waits for ends the event [R3]",
			edits:  in(replDir+"update.go", "if ev.ID != 0 {\n\t\tc.end()\n\t}", ""),
			killer: scenario("TestQuiet_NobodySeesAnEventThatGoesOn"),
		},
		{
			name:   "apply a push of which some is there",
			rule:   "a push leaves out what came and went among its events [R7b]",
			edits:  in(replDir+"delta.go", "return d.base.Get(d.origin) < n && n < d.head.Get(d.origin)", "return n == 0 && n > 0"),
			killer: scenario("TestPush_OfWhichSomeIsThereIsOfNoUse"),
		},
		{
			name:   "leave out the removal of what was pushed before",
			rule:   "a push leaves out what came and went among its events [R7b]",
			edits:  in(replDir+"codec.go", "a.Replica == w.own && a.N > w.since", "a.Replica == w.own"),
			killer: scenario("TestPush_WhatCameAndWentDoesNotTravel"),
		},
		{
			name:   "let a call that waits for others wait for the next push",
			rule:   "a push waits only if no call does [R7b]",
			edits:  in(replDir+"ops.go", "c.urgent = c.urgent || ev.Level.Kind != Local && c.unpushed > 0", ""),
			killer: scenario("TestPush_PausesUnderLoad"),
		},
		{
			name:   "push when an acknowledgement comes",
			rule:   "an acknowledgement does not end the pause [R7b]",
			edits:  in(replDir+"core.go", "wire.ReplicatorAck && c.now.Before(c.pushDue())", "wire.ReplicatorAck && false"),
			killer: scenario("TestPush_PausesUnderLoad"),
		},
		{
			name:   "take a push to follow itself",
			rule:   "a push names the events that nothing else it names follows [R7a]",
			edits:  in(replDir+"window.go", "c.implied.Join(d.base)", "c.implied.Join(d.head)"),
			killer: scenario("TestPush_NamesTheNearestEventsAlone"),
		},
		{
			name:   "name all events that came since the last push",
			rule:   "a push names the events that nothing else it names follows [R7a]",
			edits:  in(replDir+"update.go", "if !c.implied.Covers(e) {", "if true {"),
			killer: scenario("TestPush_NamesTheNearestEventsAlone"),
		},
		{
			name:   "tell every new vector to every member",
			rule:   "heartbeats tell a digest, since most have seen the same [R20]",
			edits:  in(replDir+"beat.go", "c.glance(c.peers", "c.sendBeat(c.peers"),
			killer: scenario("TestBeat_AnUpdateIsNotFollowedByTheVectorToEverybody"),
		},
		{
			name:   "go on with digests that others do not know",
			rule:   "who was asked for its vector tells it, for a heartbeat interval [R20]",
			edits:  in(replDir+"beat.go", "\t\tc.unlike = p.remindAt\n", ""),
			killer: scenario("TestBeat_WhoHasNotSeenTheSameAsks"),
		},
		{
			name:   "leave it to chance that a member hears what it lacks",
			rule:   "a heartbeat of who lacks something is answered [R20]",
			edits:  in(replDir+"beat.go", "c.remind(p, v)\n", ""),
			killer: scenario("TestBeat_WhoIsKnownToLackSomethingIsTold"),
		},
		{
			name:   "keep what came as an answer to the next heartbeat",
			rule:   "what came as an answer is told of soon [R20]",
			edits:  in(replDir+"fill.go", "c.spread()\n", ""),
			killer: scenario("TestNumbers_ConvergenceAfterAPartition"),
		},
		{
			name:   "put the parts of two answers together",
			rule:   "one answer is taken, whatever else comes under the same request [R15]",
			edits:  in(replDir+"fill.go", "return r.answer == answer", "return true"),
			killer: scenario("TestRequest_PartsOfTwoAnswersDoNotMix"),
		},
		{
			name:   "apply a push without its causes",
			rule:   "a delta is applied when its base is covered [R6]",
			edits:  in(replDir+"window.go", "case d.base.Leq(c.seen):", "case d.base.Get(from.replica) <= c.seen.Get(from.replica):"),
			killer: scenario("TestPush_CausesOfOtherReplicasComeFirst"),
		},
		{
			name:   "apply what waits without its causes",
			rule:   "a delta is applied when its base is covered [R6]",
			edits:  in(replDir+"window.go", "func(o waiting) bool { return o.d.base.Leq(c.seen) })", "func(waiting) bool { return true })"),
			killer: scenario("TestPush_CausesOfOtherReplicasComeFirst"),
		},
		{
			name:   "apply covered events again",
			rule:   "what is covered was applied, or removed since [R6]",
			edits:  in(replDir+"ledger.go", "fresh := d.beyond(l.seen)", "fresh := d.events"),
			killer: scenario("TestRepair_WhatIsCoveredIsNotAppliedAgain"),
		},
		{
			name:   "send atoms that are gone as if they lived",
			rule:   "an added atom that does not live any more is marked gone [R12]",
			edits:  in(replDir+"delta.go", "if !e.gone[i][j] {", "if j >= 0 {"),
			killer: histories("300"),
		},
		{
			name:   "apply a push before what it follows",
			rule:   "a push is applied after all that it follows [R6]: causal order",
			edits:  in(replDir+"window.go", "case d.base.Leq(c.seen):\n\t\tc.applyPush(d)", "case true:\n\t\tc.applyPush(d)"),
			killer: histories("10"),
		},
		{
			name:   "name one cause of a push at most",
			rule:   "a push names all events that nothing else it names follows [R7a]: causal order",
			edits:  in(replDir+"update.go", "if !c.implied.Covers(e) {", "if !c.implied.Covers(e) && len(follows) < 2 {"),
			killer: histories("10"),
		},
		{
			name:   "show the last key of an update only to others",
			rule:   "an update is installed in one step [R3]: read your writes",
			edits:  in(replDir+"ledger.go", "\t\td.put(w.key, w.next)\n", "\t\tif w != work[len(work)-1] {\n\t\t\td.put(w.key, w.next)\n\t\t}\n"),
			killer: histories("10"),
		},
		{
			name:   "take the keys of a state as they are",
			rule:   "a join keeps what only this replica has seen [R14]: monotonic reads",
			edits:  in(replDir+"ledger.go", "d.set(key, a, held(key, both, a))", "d.set(key, a, held(key, b.Store, a))"),
			killer: histories("10"),
		},
		{
			name:   "forget the floor after a snapshot",
			rule:   "what came as a snapshot is not in the log [R14]",
			edits:  in(replDir+"log.go", "o = &originLog{floor: l.floor.Get(r)}", "o = &originLog{}"),
			killer: scenario("TestBulk_FloorRisesWithTheJoin"),
		},
		{
			name: "answer a doubled request twice",
			rule: "the parts of two answers do not mix",
			edits: []edit{
				{replDir + "answer.go", "a != nil && a.id == m.Id {", "a != nil && a.id == 0 {"},
				{replDir + "answer.go", "if m.Id <= p.request && ", "if m.Id < p.request && "},
			},
			killer: scenario("TestRequest_DoubledIsAnsweredOnce"),
		},
		{
			name:   "show parts of a snapshot before all are there",
			rule:   "an answer is applied in one step [R15]",
			edits:  in(replDir+"fill.go", "case r.last >= 0 && r.next > r.last:", "case r.next > 0:"),
			killer: scenario("TestBulk_ThirdPartyPushAndLocalUpdateDuringTheTransfer"),
		},
		{
			name: "complete an answer from what has changed since",
			rule: "what was left out is that of the copy that was compared [R16]",
			edits: []edit{
				{replDir + "fill.go", "s.state(r.copied)", "s.state(c.state())"},
				{replDir + "stream.go", "if out.sum != s.head.sum {", "if false {"},
			},
			killer: scenario("TestBulk_SkippedKeyChangesBeforeAdoption"),
		},
		{
			name:   "believe a state that does not fit its fingerprint",
			rule:   "the fingerprint proves a state that was put together [R16]",
			edits:  in(replDir+"stream.go", "if out.sum != s.head.sum {", "if false {"),
			killer: scenario("TestBulk_WrongComparisonIsNoticed"),
		},
		{
			name: "push without naming what it follows",
			rule: "a push names what of others is new since the last [R6]",
			edits: []edit{
				{replDir + "update.go", "if c.told.Len() > 0 {", "if true {"},
				{replDir + "update.go", "follows = append(follows, e)", "_ = e"},
			},
			killer: scenario("TestPush_CausesOfOtherReplicasComeFirst"),
		},
		{
			name:   "drop marks without the owner's events",
			rule:   "a mark goes when the owner has seen the reset and all of its events from before are here [R10]",
			edits:  in(replDir+"beat.go", "p.vector().Covers(m.By) && c.seen.Get(owner) >= p.vector().Get(owner)", "p.vector().Covers(m.By)"),
			killer: scenario("TestMark_StaysUntilTheOwnersEventsAreHere"),
		},
		{
			name:   "drop marks before the owner knows the reset",
			rule:   "a mark goes when the owner has seen the reset and all of its events from before are here [R10]",
			edits:  in(replDir+"beat.go", "p.vector().Covers(m.By) && c.seen.Get(owner) >= p.vector().Get(owner)", "c.seen.Get(owner) >= p.vector().Get(owner)"),
			killer: histories("300"),
		},
		{
			name:   "send an event as one record, whatever its size",
			rule:   "what is accepted crosses: a large event in pieces [R51]",
			edits:  in(replDir+"stream.go", "s.enc.event(e, s.keys, s.place, size)", "s.enc.event(e, s.keys, s.place, 1<<40)"),
			killer: scenario("TestTransfer_LargeEventsCross"),
		},
		{
			name:   "send the atoms of a path in one record",
			rule:   "what is accepted crosses: a record is at most one atom longer than a part [R51]",
			edits:  in(replDir+"codec.go", "if path == from.path && l.Replica <= from.after {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tif len(kc)-start >= limit {", "if path == from.path && l.Replica <= from.after {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tif next.path != path && len(kc)-start >= limit {"),
			killer: scenario("TestTransfer_LargeEventsCross"),
		},
		{
			name:   "accept what no receiver takes",
			rule:   "an update that a receiver would refuse changes nothing [R51]",
			edits:  in(replDir+"update.go", "if c.Empty() {", "if true {"),
			killer: scenario("TestTransfer_WhatNoReceiverTakesIsRefused"),
		},
		{
			name:   "tell of keys with other atoms alone",
			rule:   "subscribers are told when a mark changes a value [R54]",
			edits:  in("internal/causal/store.go", "same = same && plus == otherPlus && minus == otherMinus", "same = same || plus == otherPlus && minus == otherMinus"),
			killer: scenario("TestChanged_AResetThatArrivesAsAMarkAlone"),
		},
		{
			name:   "keep pushes for ever whose causes have died",
			rule:   "a push leaves the window when what it follows is not on its way any more [R55]",
			edits:  in(replDir+"window.go", "return !now.Before(o.until)", "return false"),
			killer: scenario("TestWindow_PushesWhoseCausesDiedLeave"),
		},
	}
}
