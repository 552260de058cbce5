package main

// restores are bugs of replicas whose state is not what the others assume: restored from a
// snapshot, or damaged. Rules in brackets are those of docs/replication.md.
func restores() []mutant {
	return []mutant{
		{
			name:   "go on under the number of a restored replica",
			rule:   "a restored replica goes on under a new id [R3]",
			edits:  in("distributeddata", "\tif c.restored {\n", "\tif false {\n"),
			killer: scenario("TestRestored_WhenOthersKnowMoreOfIt"),
		},
		{
			name:   "end no call of a restored replica",
			rule:   "the calls of a restored replica end [R4]",
			edits:  in("distributeddata", "range waitingCalls(&c.waits, &c.disk) {\n", "range waitingCalls(&c.waits, &c.disk)[:0] {\n"),
			killer: scenario("TestRestored_EndsEveryCall"),
		},
		{
			name:   "count the disk of a restored replica",
			rule:   "the disk of a restored replica lacks what it acknowledged [R3]",
			edits:  in("distributeddata", "n.disk.kept, n.disk.again = false, c.disk.again", "n.disk.again = c.disk.again"),
			killer: scenario("TestRestored_EndsEveryCall"),
		},
		{
			name:   "forget the peers of the former incarnation",
			rule:   "the marks of a replica that ran until recently are kept [R15]",
			edits:  in("distributeddata", "for _, p := range ps {\n\t\tf.replaced(p.replica", "for _, p := range ps[:0] {\n\t\tf.replaced(p.replica"),
			killer: scenario("TestFormers_ArePeersOfThePreviousIncarnation"),
		},
		{
			name:   "judge former replicas by the clock of the former incarnation",
			rule:   "the marks of a replica that ran until recently are kept [R15]",
			edits:  in("distributeddata", "all[i].since = time.Time{}", "_ = i"),
			killer: scenario("TestFormers_ArePeersOfThePreviousIncarnation"),
		},
		{
			name:   "reuse the answer numbers from before a restore",
			rule:   "every answer has a unique number [R4]",
			edits:  in("distributeddata", "p.ID, c.ids.next(c.now), a", "p.ID, c.ids.last+1, a"),
			killer: scenario("TestRequest_PartsOfTwoAnswersDoNotMix"),
		},
		{
			name:   "send only the hashes of members in view",
			rule:   "an answer contains the hashes of members that its sender sees or remembers [R4]",
			edits:  in("distributeddata", "if m.Rank != quorum.Gone {", "if false && m.Rank != quorum.Gone {"),
			killer: scenario("TestRestored_AnswersTellHashesOfMembersOutOfView"),
		},
		{
			name: "ignore that others know more own events",
			rule: "a replica continues under a new id if others know more of its events than itself [R3]",
			edits: []edit{ // a vector shows this, and so does an acknowledgement
				{"distributeddata", "if !c.history.Owns(v.Get(c.Replica()), 0) {", "if false {"},
				{"distributeddata", "n <= h.Own() && !contradict(", "!contradict("},
			},
			killer: scenario("TestRestored_WhenOthersKnowMoreOfIt"),
		},
		{
			name:   "treat another event with the same number as the own one",
			rule:   "an event is confirmed by its hash, not by its number [R4]",
			edits:  in("distributeddata", " && !contradict(h.hashes.own.at(n), x)", ""),
			killer: scenario("TestRestored_TheFirstActIsAWrite"),
		},
		{
			name:   "apply a push that continues another history",
			rule:   "a push continues the history of its origin [R4]",
			edits:  in("distributeddata", "return !contradict(", "return true || !contradict("),
			killer: scenario("TestRestored_OneThatHasOtherEventsDoesNotGoOn"),
		},
		{
			name:   "treat a vector as an acknowledgement",
			rule:   "an event is confirmed by its hash, not by its number [R4]",
			edits:  in("distributeddata", "p.take(v)\n", "p.take(v)\n\tp.vouches, p.counted = true, max(p.counted, v.Get(c.Replica()))\n\tc.waits.Stir()\n"),
			killer: scenario("TestRestored_NobodyAcknowledgesOtherEvents"),
		},
		{
			name:   "treat requests of a restored replica as duplicates",
			rule:   "the requests of a restored replica are answered [R20]",
			edits:  in("distributeddata", "id <= a.request && now.Before(a.asked.Add(o.timing.Patience))", "id <= a.request"),
			killer: scenario("TestRestored_ItsQuestionsAreAnswered"),
		},
		{
			name:   "accept the state of any member when outvoted",
			rule:   "an outvoted replica accepts a state of the side that stands [R27]",
			edits:  in("distributeddata", "p.vote == (stateVote{true, off})", "p.vote.differs()"),
			killer: scenario("TestDivergence_TwoThatAreDamagedTakeTheStateOfTheRest"),
		},
		{
			name:   "let the side that was compared first stand",
			rule:   "of equal sides, the side of the smallest replica id stands [R27]",
			edits:  in("distributeddata", "mine == most && p.replica < first", "false"),
			killer: scenario("TestDivergence_OfTwoTheYoungerYields"),
		},
		{
			name:   "take the state of a side before the vote is decided",
			rule:   "the side of a majority stands, or the largest of all [R27]",
			edits:  in("distributeddata", "if !decided || off", "if _ = decided; off"),
			killer: scenario("TestDivergence_AMajorityStandsBeforeAllAreCompared"),
		},
		{
			name:   "wait for all members although a majority holds one state",
			rule:   "the side of a majority stands [R27]",
			edits:  in("distributeddata", "votes[off] > n/2 || compared == n", "compared == n"),
			killer: scenario("TestDivergence_AMajorityStandsBeforeAllAreCompared"),
		},
		{
			name:   "repair the state without reapplying later events",
			rule:   "a repair keeps events that the other replica had not seen [R27]",
			edits:  in("distributeddata", "h.batch.apply(e, d.keys, s.Seen)", "_ = e"),
			killer: scenario("TestDivergence_MendingKeepsWhatCameMeanwhile"),
		},
		{
			name:   "never be outvoted",
			rule:   "an outvoted replica repairs itself [R26]",
			edits:  in("distributeddata", "return off, votes[off] > n/2 ||", "return history.Sum{}, votes[off] > n/2 ||"),
			killer: scenario("TestDivergence_TheOutvotedReplicaMendsItself"),
		},
		{
			name:   "never recompute the fingerprint from the atoms",
			rule:   "memory rot is detected [R26]",
			edits:  in("distributeddata", "c.stats.Corrupted += c.history.Scrub()", ""),
			killer: scenario("TestDivergence_CorruptedMemoryIsFoundByScrubbing"),
		},
		{
			name:   "omit the payload from a fingerprint",
			rule:   "a fingerprint covers all parts of an atom [R26]",
			edits:  in("distributeddata", "sha256.Sum256(append(append(append(b, key...), path...), l.Payload...))", "sha256.Sum256(append(append(b, key...), path...))"),
			killer: killer{pkg: "./distributeddata/internal/history", run: "^TestFingerprint_ChosenPayloadsDiffer$"},
		},
		{
			name:   "accept messages of former incarnations",
			rule:   "messages are signed by the present replica [R2]",
			edits:  in("distributeddata", "if p.replica != ev.From || ev.To == 0 {", "if ev.To == 0 {"),
			killer: scenario("TestMessages_OfFormerIncarnationsAreDropped"),
		},
		{
			name:   "exclude a member that restarts under its id",
			rule:   "a replica that has not taken its place yet may be the present one [R44]",
			edits:  in("distributeddata", "if p.replica != 0 && announced && ", "if p.replica != 0 && "),
			killer: scenario("TestRestart_WithAClockThatWasSetBack"),
		},
		{
			name: "answer every message of a former replica",
			rule: "an exchange of answers ends [R45]",
			edits: []edit{
				{"distributeddata", "if p.turnsAway(c.now, c.cfg.BeatInterval) {", "if true {"},
				{"distributeddata", "case !p.echoes(c.now, c.cfg.Grace, c.members.Digest()):", "case false:"},
			},
			killer: scenario("TestTwins_SayNoMoreThanTheirHeartbeats"),
		},
		{
			name:   "greet every new replica",
			rule:   "an exchange of answers ends [R45]",
			edits:  in("distributeddata", "\tif !greets {", "\tif !greets && c.cfg.Grace == 0 {"),
			killer: scenario("TestTwins_SayNoMoreThanTheirHeartbeats"),
		},
	}
}
