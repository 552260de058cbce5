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
			name:   "use numbers again after a restore",
			rule:   "a replica that others know more of goes on under a new id [R2a]",
			edits:  in(replDir+"reborn.go", "c.rename(c.cfg.NewReplica())\n", ""),
			killer: scenario("TestReborn_WhenOthersKnowMoreOfUs"),
		},
		{
			name: "overlook that others know more of us",
			rule: "a replica that others know more of goes on under a new id [R2a]",
			edits: []edit{ // a vector tells, and so does an acknowledgement
				{replDir + "receive.go", "if n := v.Get(c.me); n > c.seen.Get(c.me) {", "if n := v.Get(c.me); false {"},
				{replDir + "print.go", "case n > c.seen.Get(c.me):", "case false:"},
			},
			killer: scenario("TestReborn_WhenOthersKnowMoreOfUs"),
		},
		{
			name:   "take other events under the same number for one's own",
			rule:   "an event is confirmed by what it did, not by its number [R57]",
			edits:  in(replDir+"print.go", "case n > 0 && len(prints) > 0 && contradict(", "case false && contradict("),
			killer: scenario("TestRestored_TheFirstActIsAWrite"),
		},
		{
			name:   "apply a push behind other events",
			rule:   "a push goes on with the events that its origin has done before [R57]",
			edits:  in(replDir+"print.go", "if !contradict(", "if true || !contradict("),
			killer: scenario("TestRestored_OneThatHasOtherEventsDoesNotGoOn"),
		},
		{
			name:   "take a vector for an acknowledgement",
			rule:   "an event is confirmed by what it did, not by its number [R57]",
			edits:  in(replDir+"receive.go", "p.take(v)\n", "p.take(v)\n\tp.vouches, p.counted, c.stirred = true, max(p.counted, v.Get(c.me)), true\n"),
			killer: scenario("TestRestored_NobodyAcknowledgesOtherEvents"),
		},
		{
			name:   "forget the events that nobody has confirmed",
			rule:   "what was done under revoked numbers is done again under the new id [R57]",
			edits:  in(replDir+"fill.go", "c.redo()", "c.revoked = nil"),
			killer: scenario("TestRestored_TheFirstActIsAWrite"),
		},
		{
			name:   "ask one member for its state for ever",
			rule:   "a restored replica takes the state of whoever answers [R57]",
			edits:  in(replDir+"reborn.go", "v.asked += n + 1", "v.asked = 0"),
			killer: scenario("TestRestored_TheOneThatKnewDoesNotAnswer"),
		},
		{
			name:   "add the whole counter again",
			rule:   "of a counter slot what the revoked events added is done again [R57]",
			edits:  in(replDir+"redo.go", "if goesOn {\n\t\tholds", "if false {\n\t\tholds"),
			killer: scenario("TestRestored_Counters"),
		},
		{
			name:   "overlook that a revoked event reset a counter",
			rule:   "a reset by a revoked event takes off what it had seen [R57]",
			edits:  in(replDir+"redo.go", "if s.had.N > 0 && !goesOn {", "if false {"),
			killer: scenario("TestRestored_Counters"),
		},
		{
			name:   "take the slot that goes on for one that was replaced",
			rule:   "of a counter slot what the revoked events added is done again [R57]",
			edits:  in(replDir+"redo.go", "a.N <= common) && !owns(c.me, a.Path)", "a.N <= common)"),
			killer: scenario("TestRestored_Counters"),
		},
		{
			name:   "take messages of former incarnations",
			rule:   "messages are signed by the present replica [R2]",
			edits:  in(replDir+"receive.go", "if p.replica != ev.From || ev.To == 0 {", "if ev.To == 0 {"),
			killer: scenario("TestMessages_OfFormerIncarnationsAreDropped"),
		},
		{
			name:   "count acknowledgements of a replaced replica",
			rule:   "quorums count present replicas [R18]",
			edits:  in(replDir+"beat.go", "*p = peer{Member: p.Member,", "*p = peer{Member: p.Member, acked: p.acked, ready: p.ready,"),
			killer: scenario("TestRestart_AcksOfAReplacedReplicaDoNotCount"),
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
				{replDir + "answer.go", "if m.Id <= p.request {", "if m.Id < p.request {"},
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
			name:   "mend without what was done since",
			rule:   "mending keeps what the other replica had not seen [R22a]",
			edits:  in(replDir+"ledger.go", "l.batch.apply(e, d.keys, s.Seen)", "_ = e"),
			killer: scenario("TestDivergence_MendingKeepsWhatCameMeanwhile"),
		},
		{
			name:   "never be outvoted",
			rule:   "the replica that is outvoted mends itself [R25]",
			edits:  in(replDir+"vote.go", "return them > n/2 ||", "return"),
			killer: scenario("TestDivergence_TheOutvotedReplicaMendsItself"),
		},
		{
			name:   "never scrub",
			rule:   "memory that rots is found [R25]",
			edits:  in(replDir+"beat.go", "c.scrubSome()", ""),
			killer: scenario("TestDivergence_RottenMemoryIsFoundByScrubbing"),
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
			name:   "read what differs from one base as if it differed from another",
			rule:   "what a message says is the base that it names and what differs from it [R40]",
			edits:  in(replDir+"base.go", "if string(k.digest[:]) == string(name) {", "if len(name) > 0 {"),
			killer: histories("40"),
		},
		{
			name:   "leave out what only the base has",
			rule:   "what a message says is the base that it names and what differs from it [R40]",
			edits:  in(replDir+"base.go", "ids, numbers = append(ids, r), append(numbers, n[0])\n", "if n[0] > 0 {\n\t\t\t\tids, numbers = append(ids, r), append(numbers, n[0])\n\t\t\t}\n"),
			killer: scenario("TestBase_ToldAndReadIsTheSameVector"),
		},
		{
			name:   "prefer no base to another",
			rule:   "members come to use the same base without agreeing [R41]",
			edits:  in(replDir+"base.go", "if k.better(c.base) && k.vector.Leq(c.seen) {", "if false {"),
			killer: scenario("TestBase_MembersComeToUseTheSame"),
		},
		{
			name:   "never renew the base",
			rule:   "replicas that have gone are taken into the base [R41]",
			edits:  in(replDir+"base.go", "if len(gone) >= renewAfter {", "if false {"),
			killer: scenario("TestBase_TakesInWhatHasGone"),
		},
		{
			name:   "renew the base as the last that went",
			rule:   "a renewed base keeps what the former had [R41]",
			edits:  in(replDir+"base.go", "c.useBase(c.base.vector.Apply(gone))", "c.useBase(causal.MakeVector(gone...))"),
			killer: scenario("TestBase_TakesInWhatHasGone"),
		},
		{
			name:   "take a base without checking its digest",
			rule:   "a base is taken when its digest is the one that was asked for [R42]",
			edits:  in(replDir+"fetch.go", "if b.digest != f.digest || ", "b.digest = f.digest\n\tif "),
			killer: scenario("TestBase_AForgedOneIsRefused"),
		},
		{
			name:   "drop a message whose base is not known",
			rule:   "a message waits for its base [R42]",
			edits:  in(replDir+"fetch.go", "if len(c.awaiting) < c.cfg.WindowCount && ", "if false && "),
			killer: scenario("TestBase_AnUnknownOneIsAskedForWhileTheMessageWaits"),
		},
		{
			name:   "keep every message whose base is not known",
			rule:   "what waits for a base is bounded [R42]",
			edits:  in(replDir+"fetch.go", "if len(c.awaiting) < c.cfg.WindowCount && ", "if "),
			killer: scenario("TestBase_WhatWaitsIsBounded"),
		},
		{
			name:   "leave a lost part of a base lost",
			rule:   "a part that does not come is asked for again [R42]",
			edits:  in(replDir+"fetch.go", "if p := c.peer(f.member); p != nil && p.replica != 0 && c.now.Before(f.deadline) {\n\t\tc.sendBaseRequest(p)\n", "if p := c.peer(f.member); p != nil && p.replica != 0 && c.now.Before(f.deadline) {\n"),
			killer: scenario("TestBase_ALostPartIsAskedForAgain"),
		},
		{
			name:   "send a base from its beginning after a loss",
			rule:   "a base goes on where it broke off [R42]",
			edits:  in(replDir+"fetch.go", "if uint64(r) <= m.After {\n\t\t\t\tcontinue\n\t\t\t}\n", ""),
			killer: scenario("TestBase_ALostPartIsAskedForAgain"),
		},
		{
			name:   "encode all that a replicator has seen with each value",
			rule:   "a value names the replicas that its atoms name [R40]",
			edits:  in("crdt/wire.go", "a.seen = a.store.Named(a.seen)", ""),
			killer: killer{pkg: "./crdt", run: "TestSnapshot_NamesTheReplicasOfItsAtoms"},
		},
		{
			name:   "take over half of a vector where the other half is the same",
			rule:   "a join covers what either covers",
			edits:  in("internal/causal/tree.go", "case left == a.left && right == a.right:\n\t\treturn a", "case left == a.left:\n\t\treturn a"),
			killer: killer{pkg: "./internal/causal", run: "TestVector_"},
		},
		{
			name:   "refilled by one member",
			rule:   "a refill meets every write quorum [R17]",
			edits:  in(replDir+"admit.go", "need := size - majorityOf(size) + 1", "need := 1"),
			killer: scenario("TestRefill_OneAnswerIsNotEnough"),
		},
		{
			name:   "refilled by members that are not",
			rule:   "only ready members count in a refill [R17]",
			edits:  in(replDir+"members.go", "= true, h.ready && p.votes, h.entering", "= true, true, h.entering"),
			killer: scenario("TestRefill_AnswersOfTheUnreadyDoNotCount"),
		},
		{
			name: "count read answers of members that are not ready",
			rule: "only ready members count in quorums [R18]",
			edits: []edit{
				{replDir + "read.go", "if !same || !m.Ready && !m.Resigned {", "if !same {"},
				{replDir + "members.go", "return p.votes && p.ready && p.vouches", "return p.votes && p.vouches"},
			},
			killer: scenario("TestRead_TheUnreadyDoNotCount"),
		},
		{
			name:   "count acknowledgements of members that are not ready",
			rule:   "only ready members count in quorums [R18]",
			edits:  in(replDir+"ops.go", "return p.speaks() && p.counted >= n", "return p.votes && p.acked >= n"),
			killer: scenario("TestWrite_TheUnreadyDoNotCount"),
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
			name:   "an acknowledgement raises the peer's vector",
			rule:   "what a peer knows and what it did are known of one moment [R10]",
			edits:  in(replDir+"receive.go", "c.confirm(p, a.n, prints, c.under(p, a.members) && a.ready)", "c.confirm(p, a.n, prints, c.under(p, a.members) && a.ready)\n\tp.seen = p.seen.With(causal.Dot{Replica: c.me, N: a.n})"),
			killer: scenario("TestMark_AcknowledgementIsNoKnowledge"),
		},
		{
			name:   "read without waiting for the target",
			rule:   "a read ends when this replica covers what was answered [R19]",
			edits:  in(replDir+"read.go", "if !r.target.Leq(c.seen) {", "if false {"),
			killer: histories("300"),
		},
		{
			name:   "a linearizable read shows what no majority covers",
			rule:   "what a linearizable read shows, no later one misses [R19]",
			edits:  in(replDir+"read.go", "if o.level.Kind != Linear {", "if true {"),
			killer: killer{pkg: "./distributeddata", run: "^TestGet_LinearizableReadsNeverGoBack$"},
		},
		{
			name:   "acknowledge a no-op with the newest own event",
			rule:   "a no-op waits for what it observed [R50]",
			edits:  in(replDir+"ops.go", "case c.seen.Equal(c.last):", "case true:"),
			killer: scenario("TestNoop_WaitsForWhatItObserved"),
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
			name:   "a read joins a question on its way",
			rule:   "a read asks after it has begun [R52]",
			edits:  in(replDir+"ops.go", "o.level == level && !o.asked {", "o.level == level {"),
			killer: scenario("TestRead_JoinsNoQuestionAskedBefore"),
		},
		{
			name:   "a write ends with a later one",
			rule:   "enough replicas cover each event that is acknowledged [R18, R52]",
			edits:  in(replDir+"ops.go", "case s.done && w.n <= s.upTo:", "case s.done:"),
			killer: scenario("TestWrite_TheUnreadyDoNotCount"),
		},
		{
			name:   "leave when one other has everything",
			rule:   "who leaves hands over what a majority of the rest may lack [R53]",
			edits:  in(replDir+"leave.go", "s.need = min(c.heirs(), (c.size()-1)/2+1)", "s.need = min(c.heirs(), 1)"),
			killer: scenario("TestDrain_MembersThatLeaveOneByOneLoseNothing"),
		},
		{
			name:   "hand over to those in view alone",
			rule:   "a majority of those that are counted has what a member that leaves held, seen or not [R53]",
			edits:  in(replDir+"leave.go", "s.need = min(c.heirs(), (c.size()-1)/2+1)", "s.need = min(len(c.peers), (c.size()-1)/2+1)"),
			killer: scenario("TestDrain_ThoseOutOfViewAreToBeHandedItToo"),
		},
		{
			name:   "hand over to one that leaves",
			rule:   "what comes to a member that leaves it hands over to nobody [R53]",
			edits:  in(replDir+"leave.go", "return !p.parts && !p.goes && l.want.Leq(p.kept)", "return l.want.Leq(p.vector())"),
			killer: scenario("TestDrain_NothingIsHandedToOneThatLeaves"),
		},
		{
			name:   "wait for those that leave to be handed something",
			rule:   "members that leave together do not wait for each other [R53]",
			edits:  in(replDir+"leave.go", "r.name != c.cfg.Member && !c.roll.parted[r.inc.replica]", "r.name != c.cfg.Member"),
			killer: scenario("TestDrain_AllAtOnceEnds"),
		},
		{
			name:   "acknowledge while leaving",
			rule:   "a leaving replica counts in no quorum [R53]",
			edits:  in(replDir+"ops.go", "return c.ready && !c.leaving", "return c.ready"),
			killer: scenario("TestDrain_TheLeavingCountNowhere"),
		},
		{
			name:   "tell of keys with other atoms alone",
			rule:   "subscribers are told when a mark changes a value [R54]",
			edits:  in("internal/causal/store.go", "same = same && plus == otherPlus && minus == otherMinus", "same = same || plus == otherPlus && minus == otherMinus"),
			killer: scenario("TestChanged_AResetThatArrivesAsAMarkAlone"),
		},
		{
			name:   "leave the payload out of a fingerprint",
			rule:   "a fingerprint is that of all that an atom says [R25]",
			edits:  in(replDir+"fingerprint.go", "sha256.Sum256(append(append(append(b, key...), path...), l.Payload...))", "sha256.Sum256(append(append(b, key...), path...))"),
			killer: scenario("TestFingerprint_ChosenPayloadsDiffer"),
		},
		{
			name:   "keep pushes for ever whose causes have died",
			rule:   "a push leaves the window when what it follows is not on its way any more [R55]",
			edits:  in(replDir+"window.go", "return !now.Before(o.until)", "return false"),
			killer: scenario("TestWindow_PushesWhoseCausesDiedLeave"),
		},
		{
			name:   "leave a member out that restarts under its id",
			rule:   "a replica that has not taken its place yet may be the present one [R56]",
			edits:  in(replDir+"beat.go", "if p.replica != 0 && announced && ", "if p.replica != 0 && "),
			killer: scenario("TestRestart_WithAClockThatWasSetBack"),
		},
		{
			name: "answer every message of a former replica",
			rule: "answers come to an end [R58]",
			edits: []edit{
				{replDir + "beat.go", "if c.turnsAway(p) {", "if true {"},
				{replDir + "members.go", "if c.echoes(p) {", "if true {"},
			},
			killer: scenario("TestTwins_SayNoMoreThanTheirHeartbeats"),
		},
		{
			name:   "greet every replica that is new",
			rule:   "answers come to an end [R58]",
			edits:  in(replDir+"beat.go", "\tif !greets {", "\tif !greets && c.cfg.Grace == 0 {"),
			killer: scenario("TestTwins_SayNoMoreThanTheirHeartbeats"),
		},
		{
			name:   "a majority is half",
			rule:   "two majorities meet",
			edits:  in(replDir+"types.go", "max(n/2+1+l.Plus, l.Least)", "max(n/2+l.Plus, l.Least)"),
			killer: saved(replCore, "majority_is_half"),
		},
		{
			name:   "go on with events that were not installed",
			rule:   "a step that panicked has made a transition or has not [R29]",
			edits:  in(replDir+"resume.go", "	n.restore()\n	n.note", "	n.note"),
			killer: scenario("TestResume_AnUpdateIsMadeOrNot"),
		},
		{
			name:   "commit once more what an interrupted step has committed",
			rule:   "a step that panicked has made a transition or has not [R29]",
			edits:  in(replDir+"resume.go", "c.seen.Covers(c.openAs) {", "false {"),
			killer: scenario("TestResume_AnUpdateIsMadeOrNot"),
		},
		{
			name:   "forget the calls under way when a step panics",
			rule:   "waiting calls begin again after a step that panicked [R29]",
			edits:  in(replDir+"resume.go", "!w.ended && c.beginAgain(w) {", "!w.ended && w == nil && c.beginAgain(w) {"),
			killer: scenario("TestResume_CallsUnderWayGoOn"),
		},
		{
			name:   "tell nobody what an interrupted step has changed",
			rule:   "subscribers are told of what an interrupted step has changed [R29]",
			edits:  in(replDir+"resume.go", "n.touched = append(n.touched, causal.Clone(key))", "_ = causal.Clone"),
			killer: scenario("TestResume_APushIsAppliedOnce"),
		},
		{
			name:   "a life forgets the open event of the former one",
			rule:   "the next life holds all that the former one did [R28]",
			edits:  in(replDir+"life.go", "c.endAgain()\n\tn := New(cfg)", "n := New(cfg)"),
			killer: scenario("TestLives_TheOpenEventGoesAlong"),
		},
		{
			name:   "a life begins with the state and without what happened",
			rule:   "the events of a former life are served like those of any origin [R28]",
			edits:  in(replDir+"ledger.go", "o.sum, o.log, o.marks", "o.sum, l.log, o.marks"),
			killer: scenario("TestLives_WhatWasWrittenAloneReachesTheOthers"),
		},
		{
			name:   "a life keeps the replica id of the former one",
			rule:   "a life has a replica id of its own [R28]",
			edits:  in(replDir+"life.go", "n.past = c.past.after(c)", "n.past = c.past.after(c)\n\tn.me = c.me"),
			killer: scenario("TestLives_WhatWasWrittenAloneReachesTheOthers"),
		},
		{
			name:   "a life that follows another is ready at once",
			rule:   "a life is refilled before it counts [R17, R28]",
			edits:  in(replDir+"life.go", "n.past = c.past.after(c)", "n.past = c.past.after(c)\n\tn.ready = true"),
			killer: scenario("TestLives_TheNextOneCountsNowhereUntilRefilled"),
		},
		{
			name:   "leave without what former lives did",
			rule:   "who leaves waits for the events of former lives too [R21a, R28]",
			edits:  in(replDir+"leave.go", "task: &leave{c.seen, forget}}", "task: &leave{causal.Vector{}.Set(c.me, c.seen.Get(c.me)), forget}}"),
			killer: scenario("TestLives_DrainWaitsForWhatFormerOnesDid"),
		},
		{
			name:   "a replicator forgets what the ended life held",
			rule:   "the next life holds all that the former one did [R28]",
			edits:  in("distributeddata/lives.go", "r.mu.held = append(r.mu.held, held)", ""),
			killer: killer{pkg: "./distributeddata", run: "^TestLives_WhatWasWrittenAloneReachesTheOthers$"},
		},
		{
			name:   "begin empty when the actor is restarted",
			rule:   "the replica outlives its actor [R29]",
			edits:  in("distributeddata/life.go", "func() actor.Actor { return a }, // also", "func() actor.Actor { a = newReplica(l); return a }, // also"),
			killer: killer{pkg: "./distributeddata", run: "^TestResume_WhateverAPanicInterrupts$"},
		},
		{
			name:   "drop what comes before the replica runs",
			rule:   "a message to the PID is carried out or answered",
			edits:  in("distributeddata/door.go", "d.mu.waiting = append(d.mu.waiting, message)", ""),
			killer: killer{pkg: "./distributeddata", run: "^TestPID_MessagesBeforeTheStartWaitInOrder$"},
		},
		{
			name:   "stay down after user code has ended the goroutine",
			rule:   "functions of the application may panic or exit",
			edits:  in("distributeddata/steadfast.go", "if !returned {\n\t\t\td.runs <- run", "if !returned && run == nil {\n\t\t\td.runs <- run"),
			killer: killer{pkg: "./distributeddata", run: "^TestModify_MayExit$"},
		},
		{
			name:   "a member that was removed waits for those that ignore it",
			rule:   "nobody acknowledges anything to a member that was removed [R21a]",
			edits:  in("distributeddata/drain.go", "if a.view != nil && a.view.Removed {", "if false {"),
			killer: killer{pkg: "./distributeddata", run: "^TestClose_OfARemovedMemberTakesNoTime$"},
		},
	}
}
