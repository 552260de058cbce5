package main

// restores are bugs of replicas that are not what others take them for: restored from a snapshot, or damaged. Rules in brackets are
// those of docs/replication.md.
func restores() []mutant {
	return []mutant{
		{
			name:   "ask another when the member with the other events is out of sight",
			rule:   "a restored replica waits for the member that has the other events [R57]",
			edits:  in(replDir+"reborn.go", "if c.now.Before(v.since.Add(c.cfg.Patience)) {", "if first >= 0 && c.incoming != nil {"),
			killer: saved(replCore, "takes_the_state_of_one_that_knows_the_other_events"),
		},
		{
			name:   "leave delayed updates open while a step goes on",
			rule:   "the event of delayed updates ends with the step that begins it [R57]",
			edits:  in(replDir+"reborn.go", "\t\tc.update(ev)\n\t}\n\tc.end() // what this step goes on to apply comes behind them\n", "\t\tc.update(ev)\n\t}\n"),
			killer: saved(replCore, "waits_for_a_state_with_an_update_that_nobody_waits_for"),
		},
		{
			name: "end late calls one at a time before they are taken out",
			rule: "a step that panics while it ends late calls ends none of them twice [R29]",
			edits: []edit{
				{replDir + "reborn.go", "\tupdates, calls := takeLate(", "\tall := slices.Clone(v.delayed)\n\tupdates, calls := takeLate("},
				{
					replDir + "reborn.go", "\tfor _, ev := range updates {\n\t\tc.emit(Done{ID: ev.ID, Err: errRestored})\n\t}\n",
					"\trest := v.delayed\n\tv.delayed = all\n\tfor _, ev := range updates {\n\t\tc.emit(Done{ID: ev.ID, Err: errRestored})\n\t}\n\tv.delayed = rest\n",
				},
			},
			killer: scenario("TestRestored_AStepThatPanicsEndsNoCallTwice"),
		},
		{
			name:   "do events again that the state contains",
			rule:   "no event is done again that the state which has come contains [R57]",
			edits:  in(replDir+"fill.go", "\t\tv.narrow(its)\n", ""),
			killer: scenario("TestRestored_AnEventThatOthersHaveIsNotDoneTwice"),
		},
		{
			name:   "refuse the state of whoever has any of the revoked events",
			rule:   "a state is taken of a member that has the other events, whatever else it has [R57]",
			edits:  in(replDir+"reborn.go", "\t\tif contradict(x, v.prints.at(n)) {\n\t\t\treturn false\n\t\t}\n", ""),
			killer: scenario("TestRestored_AnEventThatOthersHaveIsNotDoneTwice"),
		},
		{
			name:   "refuse the state of whoever has more than the revoked events",
			rule:   "events of the restored replica behind its last are among the others [R57]",
			edits:  in(replDir+"reborn.go", "v == nil || h.head.Get(v.was) > v.own", "v == nil"),
			killer: scenario("TestRestored_AMemberThatHasMoreHasTheOtherEvents"),
		},
		{
			name:   "tell no prints of replicas that ran until lately",
			rule:   "prints are told of replicas that ran for members until lately [R57]",
			edits:  in(replDir+"print.go", "\tfor _, f := range c.formers {\n", "\tfor _, f := range c.formers[:0] {\n"),
			killer: saved(replCore, "takes_the_events_of_an_id_that_was_given_up"),
		},
		{
			name:   "retract nothing",
			rule:   "a restored replica retracts what it has done again [R66]",
			edits:  in(replDir+"retract.go", "if r.prints != nil {", "if false {"),
			killer: scenario("TestRetract_TheOtherSideGivesItsEventsUp"),
		},
		{
			name:   "keep retracted events",
			rule:   "retracted events are given up [R66]",
			edits:  in(replDir+"retract.go", "\t\tc.giveUp(p, known)\n", ""),
			killer: scenario("TestRetract_TheOtherSideGivesItsEventsUp"),
		},
		{
			name:   "take answers from another history",
			rule:   "an answer goes on with the events that its receiver has [R57]",
			edits:  in(replDir+"retract.go", "return c.now.Before(c.contested.Add(wait))", "return false"),
			killer: scenario("TestRetract_AnAnswerOfAnotherHistoryIsRefused"),
		},
		{
			name:   "answer who may have retracted events",
			rule:   "whoever may have retracted events is not answered [R66]",
			edits:  in(replDir+"retract.go", " || x == 0 && n > r.after && !whole && !slices.Contains(p.cleared, r.replica) {", " {"),
			killer: saved(replCore, "asks_with_events_that_have_been_retracted"),
		},
		{
			name:   "tell a restored member only of its own events",
			rule:   "a restored member hears of the other events from whoever hears of them [R57]",
			edits:  in(replDir+"retract.go", "if o != p {", "if false {"),
			killer: scenario("TestRetract_AnAnswerOfAnotherHistoryIsRefused"),
		},
		{
			name:   "believe an old acknowledgement, not a new print",
			rule:   "a member that has other events by now has not the restored member's any more [R57]",
			edits:  in(replDir+"reborn.go", "return min(common, at-1)", "continue"),
			killer: scenario("TestRestored_TheLastCommonEvent"),
		},
		{
			name:   "take a state with the own events soon",
			rule:   "a restored member goes on from a state with the other events [R57]",
			edits:  in(replDir+"retract.go", "return c.revoked.shared(h) && ", "return false && c.revoked.shared(h) && "),
			killer: saved(replCore, "takes_the_state_of_one_that_has_its_own_events"),
		},
		{
			name:   "join two histories soon",
			rule:   "members wait for the replica that has two histories [R57]",
			edits:  in(replDir+"retract.go", "wait := c.cfg.BeatInterval * forkBeats", "wait := c.cfg.Patience"),
			killer: saved(replCore, "two_histories_are_joined_before_their_origin_hears"),
		},
		{
			name:   "answer under numbers from before a restore",
			rule:   "no two answers have one number [R57]",
			edits:  in(replDir+"answer.go", "number := c.newID()", "c.nextID++\n\tnumber := c.nextID"),
			killer: saved(replCore, "answers_twice_across_a_restore"),
		},
		{
			name:   "tell prints of those in view alone",
			rule:   "an answer tells the prints of the members that its sender sees or remembers [R57]",
			edits:  in(replDir+"print.go", "if r.rank != gone {", "if false {"),
			killer: scenario("TestRestored_AnswersTellPrintsOfMembersOutOfView"),
		},
		{
			name:   "keep the floor of an origin that is revoked",
			rule:   "the log begins where the vector ends [R12]",
			edits:  in(replDir+"log.go", "l.floor = l.floor.Set(r, n)\n", ""),
			killer: scenario("TestRetract_ALogThatHasLetGoOfTheOrigin"),
		},
		{
			name:   "wait for a log that is cut to give retracted events up",
			rule:   "retracted events are given up, whatever the log holds [R66]",
			edits:  in(replDir+"fill.go", "!ok && v != nil && v.gives != 0 {", "!ok && v != nil && false {"),
			killer: scenario("TestRetract_AnAnswerOfTheOtherSideRemovesNothing"),
		},
		{
			name:   "retract what others have too",
			rule:   "a retraction begins where the histories part [R66]",
			edits:  in(replDir+"retract.go", "case x == v.prints.at(n): // and so are all before it\n\t\t\treturn\n", ""),
			killer: scenario("TestRetract_WhereTheHistoriesPart"),
		},
		{
			name:   "believe that a running replica has retracted events",
			rule:   "a replica that runs has retracted nothing [R66]",
			edits:  in(replDir+"retract.go", "c.peerOf(r.replica) != nil || ", ""),
			killer: scenario("TestRetract_WhatIsNotTaken"),
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
				{replDir + "print.go", "return its.n > c.seen.Get(c.me) || ", "return "},
			},
			killer: scenario("TestReborn_WhenOthersKnowMoreOfUs"),
		},
		{
			name:   "take other events under the same number for one's own",
			rule:   "an event is confirmed by what it did, not by its number [R57]",
			edits:  in(replDir+"print.go", " || contradict(c.prints.at(its.n), its.at(its.n))", ""),
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
			edits:  in(replDir+"redo.go", "a.N <= v.common) && !owns(v.was, a.Path)", "a.N <= v.common)"),
			killer: scenario("TestRestored_Counters"),
		},
		{
			name:   "leave before revoked events have been done again",
			rule:   "a replica that leaves does its revoked events again before [R57]",
			edits:  in(replDir+"leave.go", "if c.revoked != nil {", "if false {"),
			killer: scenario("TestRestored_LeavesWhenItsEventsAreDoneAgain"),
		},
		{
			name:   "take the requests of a restored replica for doubled ones",
			rule:   "the requests of a restored replica are answered [R15]",
			edits:  in(replDir+"answer.go", "m.Id <= p.request && c.now.Before(p.asked.Add(c.cfg.Patience))", "m.Id <= p.request"),
			killer: scenario("TestRestored_ItsQuestionsAreAnswered"),
		},
		{
			name:   "answer what waits for revoked events when a step panics",
			rule:   "every call is answered once [R29]",
			edits:  in(replDir+"resume.go", "range c.revoked.waiting() {", "range c.revoked.waiting()[:0] {"),
			killer: scenario("TestRestored_AStepThatPanics"),
		},
		{
			name:   "take the state of anybody when outvoted",
			rule:   "a replica that is outvoted takes the state that stands [R22a]",
			edits:  in(replDir+"vote.go", "p.opinion == (opinion{true, off})", "p.opinion.differs()"),
			killer: scenario("TestDivergence_TwoThatAreDamagedTakeTheStateOfTheRest"),
		},
		{
			name:   "let the side that was heard of first stand",
			rule:   "of equal sides that of the smallest replica id stands [R22a]",
			edits:  in(replDir+"vote.go", "mine == most && p.replica < first", "false"),
			killer: scenario("TestDivergence_OfTwoTheYoungerYields"),
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
			edits:  in(replDir+"vote.go", "return off, votes[off] > n/2 ||", "return Sum{}, votes[off] > n/2 ||"),
			killer: scenario("TestDivergence_TheOutvotedReplicaMendsItself"),
		},
		{
			name:   "never scrub",
			rule:   "memory that rots is found [R25]",
			edits:  in(replDir+"beat.go", "c.scrubSome()", ""),
			killer: scenario("TestDivergence_RottenMemoryIsFoundByScrubbing"),
		},
		{
			name:   "leave the payload out of a fingerprint",
			rule:   "a fingerprint is that of all that an atom says [R25]",
			edits:  in(replDir+"fingerprint.go", "sha256.Sum256(append(append(append(b, key...), path...), l.Payload...))", "sha256.Sum256(append(append(b, key...), path...))"),
			killer: scenario("TestFingerprint_ChosenPayloadsDiffer"),
		},
		{
			name:   "take messages of former incarnations",
			rule:   "messages are signed by the present replica [R2]",
			edits:  in(replDir+"receive.go", "if p.replica != ev.From || ev.To == 0 {", "if ev.To == 0 {"),
			killer: scenario("TestMessages_OfFormerIncarnationsAreDropped"),
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
	}
}
