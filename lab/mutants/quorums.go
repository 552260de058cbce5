package main

// quorums are bugs in counting members for quorums: each removes a part of the rule in section 3 of
// replication.md.
func quorums() []mutant {
	return []mutant{
		{
			name:   "leave departed members out of the answer to a member that has not heard of all",
			rule:   "a record is sent without the departed members only to a replica that has the same [M1]",
			edits:  in("distributeddata", "if same == 0 || r.Recorded() || same != r.GoneDigest() {", "if same == 0 || r.Recorded() {"),
			killer: scenario("TestPull_DepartedMembersThatDifferAreTold"),
		},
		{
			name:   "count a new member while counted members are missing and none counts",
			rule:   "where no member counts, a new member raises the majority only if no counted member is missing [M3]",
			edits:  in("distributeddata", "(counted || r.countedHere(ps)) &&", "true &&"),
			killer: scenario("TestDisk_NewMemberDoesNotCountBeforeTheDisksAreBack"),
		},
		{
			name:   "count a forgotten replica that leaves as a member",
			rule:   "a leaving replica hands over to a majority of the rest [R29]",
			edits:  in("distributeddata", "quorum.MajorityOf(c.members.Beside()))", "quorum.MajorityOf(c.members.Size() - 1))"),
			killer: scenario("TestDrain_OfAForgottenReplica"),
		},
		{
			name: "count quorums in the view",
			rule: "the counted members are remembered, not seen [M1]",
			edits: []edit{
				{"distributeddata", "need := o.Level().need(c.members.Size())", "need := o.Level().need(max(len(c.peers)+1, c.cfg.MinMembers))"},
				{"distributeddata", "hopeless: need > c.members.Size()", "hopeless: need > max(len(c.peers)+1, c.cfg.MinMembers)"},
			},
			killer: scenario("TestScript_ViewsDecideNothing"),
		},
		{
			name:   "count answers of members that remember more",
			rule:   "an answer counts only under an equal memory [M1]",
			edits:  in("distributeddata", "\treturn same\n", "\treturn true\n"),
			killer: scenario("TestScript_AnswersOfThoseThatKnowMore"),
		},
		{
			name: "count answers of members that remember less",
			rule: "an answer counts only under an equal memory [M1]",
			edits: []edit{
				{"distributeddata", "type members struct {\n", "type members struct {\n\tformer map[uint64]bool\n"},
				{
					"distributeddata", "\tc.members.news, c.members.Memory, c.members.recalled = ",
					"\tif c.members.former == nil {\n\t\tc.members.former = map[uint64]bool{}\n\t}\n\tc.members.former[c.members.Digest()] = true\n\tc.members.news, c.members.Memory, c.members.recalled = ",
				},
				{"distributeddata", "\treturn same\n", "\treturn same || c.members.former[digest]\n"},
			},
			killer: scenario("TestScript_AnswersOfThoseThatKnowLess"),
		},
		{
			name: "keep answers from before a change of the memory",
			rule: "a change of the memory voids all gathered answers [M1]",
			edits: []edit{
				{"distributeddata", "\t\tp.silence()\n", ""},
				{"distributeddata", "func (r *members) identifyAs(p *peer, m quorum.Member) {\n", "func (r *members) identifyAs(p *peer, m quorum.Member) {\n\tif m.Name == \"\" && p.name != \"\" {\n\t\treturn\n\t}\n"},
			},
			killer: scenario("TestScript_AnswersFromBeforeAChange"),
		},
		{
			name: "do not announce a restart",
			rule: "a restart is recorded before it counts [M2]",
			edits: []edit{
				{
					"distributeddata", "\tnext := quorum.Incarnation{Number: own.Inc.Number + 1, Replica: c.Replica()}\n",
					"\tif own.Rank == quorum.In {\n\t\tc.members.inc = own.Inc\n\t\treturn\n\t}\n\tnext := quorum.Incarnation{Number: own.Inc.Number + 1, Replica: c.Replica()}\n",
				},
				{"distributeddata", "Announced: h.members.announced()", "Announced: h.members.inc.Replica == h.history.Replica()"},
			},
			killer: scenario("TestScript_IncarnationsAreRemembered"),
		},
		{
			name:   "admit a new member like a restarted member",
			rule:   "a new member needs the answers of a majority [M3]",
			edits:  in("distributeddata", "\t\tneed = quorum.MajorityOf(size)\n", ""),
			killer: scenario("TestScript_HalfOfAnEvenNumberAdmitsNobody"),
		},
		{
			name:   "admit a new member with one answer",
			rule:   "a new member needs the answers of a majority [M3]",
			edits:  in("distributeddata", "\t\tneed = quorum.MajorityOf(size)\n", "\t\tneed = 1\n"),
			killer: scenario("TestScript_NewMemberCountsWhenAMajorityHasRecordedIt"),
		},
		{
			name: "count answers that a new member received before it entered",
			rule: "a majority records a new member before it counts [M3]",
			edits: []edit{
				{"distributeddata", "\tif h.members == c.members.Digest() {\n", "\tif h.members != 0 {\n"},
				{"distributeddata", "v.answered, v.refilled, v.entering, v.resigned, v.whole = false, false, false, false, false", "v.resigned, v.whole = false, false"},
			},
			killer: scenario("TestScript_AnAnswerFromBeforeTheEntryAdmitsNobody"),
		},
		{
			name:   "a start waits for whoever died during it",
			rule:   "members that cannot have voted are left out of a cold start [M6]",
			edits:  in("distributeddata", "out == 0 || r.neverVoted(ps)", "out == 0"),
			killer: scenario("TestColdStart_SomeEndForGood"),
		},
		{
			name:   "a start leaves out whoever may have voted",
			rule:   "members that cannot have voted are left out of a cold start [M6]",
			edits:  in("distributeddata", "all-answered < quorum.", "all-answered <= quorum."),
			killer: scenario("TestMembers_NeverVoted"),
		},
		{
			name:   "a new member ignores restarted members",
			rule:   "a new member asks all members that are in, ready or not [M3]",
			edits:  in("distributeddata", "p.counts() && p.refilled && p.entering:", "p.counts() && p.refilled && !p.ready:"),
			killer: scenario("TestScript_NewMemberComesToTheRestartedToo"),
		},
		{
			name: "a member that is going votes",
			rule: "a member that is going has no vote [M4]",
			edits: []edit{
				{"distributeddata", "m.Name, m.Rank == quorum.In, m.Rank == quorum.Going", "m.Name, m.Rank == quorum.In || m.Rank == quorum.Going, m.Rank == quorum.Going"},
				{"distributeddata", "if own.Rank != quorum.In || own.Inc != c.members.inc {", "if own.Rank != quorum.In && own.Rank != quorum.Going || own.Inc != c.members.inc {"},
				{"distributeddata", "\t\treturn p.covers(r.want)", "\t\treturn !p.goes && p.covers(r.want)"},
				{"distributeddata", "s.need, s.self = c.members.Needed(r.victim), c.self()", "s.need, s.self = c.members.Needed(r.victim), 0"},
			},
			killer: golden(replCore, "forgotten_member"),
		},
		{
			name:   "leave in order although those that stay could not admit this member again",
			rule:   "one that leaves first has a missing member forgotten [M8]",
			edits:  in("distributeddata", "if l.forget && c.inTheWay() != \"\" {", "if l.forget && c.inTheWay() == \"-\" {"),
			killer: scenario("TestDrain_OfOneWhileAnotherIsMissing"),
		},
		{
			name:   "forget a member that has just vanished because another leaves",
			rule:   "one that leaves waits a moment for a missing member [M8]",
			edits:  in("distributeddata", ">= backBeats*c.cfg.BeatInterval {", ">= 0 {"),
			killer: scenario("TestDrain_OfOneWhileAnotherIsMissing"),
		},
		{
			name:   "forget a member without asking others",
			rule:   "a majority agrees that a member is gone [M5]",
			edits:  in("distributeddata", "\tcase ev.Force:\n", "\tcase ev.Force || true:\n"),
			killer: scenario("TestScript_GoneNeedsAMajority"),
		},
		{
			name:   "declare a member gone when a majority knows that it is going",
			rule:   "a majority of the staying members covers the events that a majority had seen [M5]",
			edits:  in("distributeddata", "if s.done = s.self+c.peers.others(r) >= s.need; s.done {", "if s.done = true; s.done {"),
			killer: scenario("TestScript_WhoGoesHandsOver"),
		},
		{
			name: "count members that are going among those that cover the joined answers",
			rule: "a majority of the staying members covers the events that a majority had seen [M5]",
			edits: []edit{
				{"distributeddata", "\t\treturn p.covers(r.want)", "\t\treturn p.helps() && p.name != r.victim && r.want.Leq(p.sure)"},
				{"distributeddata", "if s.done = s.self+c.peers.others(r) >= s.need; s.done {", "if !r.leaves && c.members.resigned {\n\t\ts.self = 1\n\t}\n\tif s.done = s.self+c.peers.others(r) >= s.need; s.done {"},
			},
			killer: scenario("TestScript_ThoseThatGoKeepNothingForThoseThatStay"),
		},
		{
			name:   "remember all members that are gone",
			rule:   "the memory of members fits into one message",
			edits:  in("distributeddata", "if len(past) <= most && size <= maxGoneBytes {", "if len(past) <= most {"),
			killer: killer{pkg: "./distributeddata/internal/quorum", run: "^TestBounds_AMemoryFitsIntoOneMessage$"},
		},
		{
			name:   "two members are going at once",
			rule:   "one removal at a time [M4]",
			edits:  in("distributeddata", "if r.Count(quorum.Going) > 0 {", "if false {"),
			killer: scenario("TestRemoval_OneAtATime"),
		},
		{
			name:   "a member that goes and has never counted must answer",
			rule:   "a removal needs no answer of a member that has never counted [M5]",
			edits:  in("distributeddata", "c.members.Counted()-c.peers.neverCounted()", "c.members.Counted()"),
			killer: scenario("TestRemoval_NeedsNoAnswerOfOneThatNeverCounted"),
		},
		{
			name:   "count the answer that a member gave before it left the view",
			rule:   "a member is marked as going if enough staying members answer [M4]",
			edits:  in("distributeddata", "if p := c.peers.at(a.replica); p", "if p := c.peers.of(a.member); p"),
			killer: scenario("TestRemoval_CountsThoseThatStay"),
		},
		{
			name:   "the earlier of two processes with one name continues to count",
			rule:   "of two processes with one name, the later counts [M2]",
			edits:  in("distributeddata", "if own.Rank != quorum.In || own.Inc != c.members.inc {", "if own.Rank != quorum.In {"),
			killer: scenario("TestName_OfTwoProcessesTheLaterCounts"),
		},
		{
			name:   "two processes with one name take the place from each other",
			rule:   "of two processes with one name, the later counts [M2]",
			edits:  in("distributeddata", "s.now.Before(r.takeAt) || r.nameTaken(s, own, ps) {", "s.now.Before(r.takeAt) {"),
			killer: scenario("TestName_OfTwoProcessesTheLaterCounts"),
		},
		{
			name:   "report a different MinMembers with every received memory",
			rule:   "a member reports another member's different MinMembers once",
			edits:  in("distributeddata", "p.titled && !p.unequal && ", "p.titled && "),
			killer: scenario("TestMinMembers_ThatDifferAreTold"),
		},
		{
			name:   "a late heartbeat brings a former process back",
			rule:   "a recorded process is not replaced by a process from before it [R44]",
			edits:  in("distributeddata", "announced && c.members.At(r).Rank == quorum.Absent &&\n\t\t", "announced && r == 0 && "),
			killer: scenario("TestFormer_ALateHeartbeatBringsNobodyBack"),
		},
		{
			name:   "a superseded process that never counted claims its place",
			rule:   "a process that never counted and was superseded begins anew [M2]",
			edits:  in("distributeddata", "return r.counted || r.hasPlace()", "return r.inc.Number > 0"),
			killer: scenario("TestName_RejoinsWhenTheLaterDuplicateIsGone"),
		},
		{
			name:   "a process that has counted waits for a refill",
			rule:   "a process that has counted takes its place again without a refill [M2]",
			edits:  in("distributeddata", "c.members.entering, c.members.counted, c.members.filled = false, true, true\n", "c.members.entering, c.members.counted = false, true\n"),
			killer: scenario("TestName_OneThatCountedFromTheBeginningCountsAgain"),
		},
		{
			name:   "a member that was forgotten enters before it is refilled",
			rule:   "a process whose member is gone is first filled, then in [M3]",
			edits:  in("distributeddata", "\t\tc.members.filled = false\n", ""),
			killer: scenario("TestScript_OneThatWasForgottenIsRefilledBeforeItEnters"),
		},
		{
			name:   "a member that is gone asks only those that know its former place",
			rule:   "where none counts, a process is filled by all that are there [M3]",
			edits:  in("distributeddata", "own.Inc == r.inc && !own.Outside()", "own.Inc == r.inc"),
			killer: scenario("TestScript_TwoThatForgotEachOtherCountAgain"),
		},
		{
			name:   "forget a member although only MinMembers are counted",
			rule:   "ForgetAfter never goes below MinMembers [M8]",
			edits:  in("distributeddata", "s.size > s.least) && s.MayGo", "true) && s.MayGo"),
			killer: scenario("TestForgetAfter_TheFirstByNameProposesDownToMinMembers"),
		},
		{
			name:   "all propose at once that a missing member goes",
			rule:   "the first by name proposes that a missing member goes [M8]",
			edits:  in("distributeddata", "time.Duration(2+c.peers.before(c.cfg.Member))", "time.Duration(2)"),
			killer: scenario("TestForgetAfter_TheFirstByNameProposesDownToMinMembers"),
		},
		{
			name:   "take the place of a later process at once",
			rule:   "a later process of a name keeps the place until it has been out of view for a long time [M2]",
			edits:  in("distributeddata", "wait := r.beat * duplicateBeats", "wait := r.beat * 0"),
			killer: scenario("TestName_TheEarlierCountsAgainWhenTheLaterIsLongGone"),
		},
		{
			name:   "wait for a later process forever",
			rule:   "a process takes the place of a later one that has been out of view for a long time [M2]",
			edits:  in("distributeddata", "return s.now.Before(r.duplicateAt.Add(wait))", "return s.now.Before(r.duplicateAt.Add(wait)) || true"),
			killer: scenario("TestName_TheEarlierCountsAgainWhenTheLaterIsLongGone"),
		},
		{
			name:   "two processes with one name take the place at a constant rate",
			rule:   "two processes with one name take the place from each other less and less often [M2]",
			edits:  in("distributeddata", " << min(r.duplicates-1, 10)", ""),
			killer: scenario("TestName_DuplicatesTakeTurnsEverMoreRarely"),
		},
	}
}
