package main

// levels are bugs of refills, reads, acknowledgements and leaving. Rules in brackets are those of
// docs/replication.md.
func levels() []mutant {
	return []mutant{
		{
			name:   "refill from one member",
			rule:   "a refill meets every write quorum [R23]",
			edits:  in("distributeddata", "need := size - quorum.MajorityOf(size) + 1", "need := 1"),
			killer: scenario("TestRefill_OneAnswerIsNotEnough"),
		},
		{
			name:   "refill from members that are not ready",
			rule:   "only ready members count in a refill [R23]",
			edits:  in("distributeddata", "= true, s.ready && p.votes, s.entering", "= true, true, s.entering"),
			killer: scenario("TestRefill_AnswersOfTheUnreadyDoNotCount"),
		},
		{
			name: "count read answers of members that are not ready",
			rule: "only ready members count in quorums [R24]",
			edits: []edit{
				{"distributeddata", "if !same || !m.Ready && !m.Resigned {", "if !same {"},
				{"distributeddata", "return p.votes && p.ready && p.vouches", "return p.votes && p.vouches"},
			},
			killer: scenario("TestRead_TheUnreadyDoNotCount"),
		},
		{
			name: "count acknowledgements of members that are not ready",
			rule: "only ready members count in quorums [R24]",
			edits: []edit{
				{"distributeddata", "return p.speaks() && p.counted >= n", "return p.votes && p.acked >= n"},
				{"distributeddata", "w.acked = append(w.acked, p.counted)", "w.acked = append(w.acked, p.acked)"},
			},
			killer: scenario("TestWrite_TheUnreadyDoNotCount"),
		},
		{
			name:   "count acknowledgements of a replaced replica",
			rule:   "quorums count present replicas [R24]",
			edits:  in("distributeddata", "*p = peer{Member: p.Member,", "*p = peer{Member: p.Member, acked: p.acked, ready: p.ready,"),
			killer: scenario("TestRestart_AcksOfAReplacedReplicaDoNotCount"),
		},
		{
			name:   "raise the peer's vector on an acknowledgement",
			rule:   "the vector of a peer and its own events are known as of one moment [R15]",
			edits:  in("distributeddata", "cluster.confirm(p, a.n, a.hash, cluster.under(p, a.members) && a.ready)", "cluster.confirm(p, a.n, a.hash, cluster.under(p, a.members) && a.ready)\n\tp.seen = p.seen.With(causal.Dot{Replica: c.Replica(), N: a.n})"),
			killer: scenario("TestMark_AcknowledgementIsNoKnowledge"),
		},
		{
			name:   "end a read without waiting for the target",
			rule:   "a read ends when this replica covers every answered vector [R33]",
			edits:  in("distributeddata", "if s.target.Leq(c.Seen()) {", "if true {"),
			killer: histories("300"),
		},
		{
			name:   "a linearizable read shows events that no majority covers",
			rule:   "a linearizable read covers every event that an earlier one showed [R33]",
			edits:  in("distributeddata", "if o.Level().Kind != Linear {", "if true {"),
			killer: killer{pkg: "./distributeddata", run: "^TestGet_LinearizableReadsNeverGoBack$"},
		},
		{
			name:   "accept every proposal of a linearizable read",
			rule:   "a replica accepts only what covers the last vector that it accepted [R33]",
			edits:  in("distributeddata", "if !p.accepted.Leq(v) {", "if false {"),
			killer: scenario("TestRead_LinearizableReadsAtOnceShowStatesInOneOrder"),
		},
		{
			name:   "acknowledge a no-op together with the newest own event",
			rule:   "a no-op waits until enough replicas cover the state that it observed [R34]",
			edits:  in("distributeddata", "case c.history.EndsOwn():", "case true:"),
			killer: scenario("TestNoop_WaitsForWhatItObserved"),
		},
		{
			name:   "let a read join a question that was already sent",
			rule:   "a read asks after it has begun [R35]",
			edits:  in("distributeddata", "if !g.asked && g.level == level &&", "if g.level == level &&"),
			killer: scenario("TestRead_JoinsNoQuestionAskedBefore"),
		},
		{
			name:   "let any number of questions be on their way",
			rule:   "few questions of a level are on their way [R35]",
			edits:  in("distributeddata/internal/waiting/waiting.go", "return n < Rounds", "return true"),
			killer: golden("./distributeddata/internal/waiting", "reads_share_a_question"),
		},
		{
			name:   "end every waiting write when one event is covered",
			rule:   "enough replicas cover each acknowledged event [R24, R35]",
			edits:  in("distributeddata", "c.waits.Pop(o, s.upTo)", "c.waits.Pop(o, math.MaxUint64)"),
			killer: scenario("TestAck_NotFromTheWindow"),
		},
		{
			name:   "leave when one other member has everything",
			rule:   "a leaving member hands over the events that a majority of the rest may lack [R29]",
			edits:  in("distributeddata", "s.need = min(c.members.heirs(c.peers), quorum.MajorityOf(c.members.Beside()))", "s.need = min(c.members.heirs(c.peers), quorum.MajorityOf(1))"),
			killer: scenario("TestDrain_MembersThatLeaveOneByOneLoseNothing"),
		},
		{
			name:   "hand over only to members in view",
			rule:   "a majority of the counted members, in view or not, has the events of a leaving member [R29]",
			edits:  in("distributeddata", "s.need = min(c.members.heirs(c.peers), quorum.MajorityOf(c.members.Beside()))", "s.need = min(len(c.peers), quorum.MajorityOf(c.members.Size()-1))"),
			killer: scenario("TestDrain_ThoseOutOfViewAreToBeHandedItToo"),
		},
		{
			name:   "hand over to a member that leaves",
			rule:   "a leaving member hands over to no other member that leaves [R29]",
			edits:  in("distributeddata", "return !p.parts && !p.goes && l.want.Leq(p.kept)", "return l.want.Leq(p.vector())"),
			killer: scenario("TestDrain_NothingIsHandedToOneThatLeaves"),
		},
		{
			name:   "wait until leaving members have received the hand-over",
			rule:   "members that leave together do not wait for each other [R29]",
			edits:  in("distributeddata", "m.Name != own &&\n\t\t\t!r.parted[m.Inc.Replica]", "m.Name != own"),
			killer: scenario("TestDrain_AllAtOnceEnds"),
		},
		{
			name:   "acknowledge while leaving",
			rule:   "a leaving replica counts in no quorum [R29]",
			edits:  in("distributeddata", "return r.ready && !r.withdrawn", "return r.ready"),
			killer: scenario("TestDrain_TheLeavingCountNowhere"),
		},
		{
			name:   "count half of the members as a majority",
			rule:   "two majorities intersect",
			edits:  in("distributeddata", "max(n/2+1+l.Plus, l.Least)", "max(n/2+l.Plus, l.Least)"),
			killer: saved(replCore, "majority_is_half"),
		},
		{
			name:   "the members in view are called missing if a level needs more than there are",
			rule:   "an error names what has to change",
			edits:  in("distributeddata", "if e.Needed > e.Counted {", "if false {"),
			killer: killer{pkg: "./distributeddata", run: "^TestUpdate_LevelThatCannotBeReachedFailsAtOnce$"},
		},
		{
			name:   "a member that is not ready yet does not stop in order",
			rule:   "a replica that has not counted and has nothing of its own has nothing to hand over",
			edits:  in("distributeddata", "case !d.core.Ready() && d.a.uncopied() == 0:", "case false:"),
			killer: killer{pkg: "./distributeddata", run: "^TestClose_OfAMemberThatIsNotReadyYet$"},
		},
		{
			name:   "a member that is not ready yet stops in order with updates of its own",
			rule:   "Close says what may be lost",
			edits:  in("distributeddata", "case !d.core.Ready() && d.a.uncopied() == 0:", "case !d.core.Ready():"),
			killer: killer{pkg: "./distributeddata", run: "^TestClose_OfAMemberThatIsNotReadyYet$"},
		},
	}
}
