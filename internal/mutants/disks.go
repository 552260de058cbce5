package main

// disks are bugs of replicas that keep what they hold on disks.
func disks() []mutant {
	return []mutant{
		{
			name: "let a disk have some of the events of a push",
			rule: "what is pushed together is on the disk together [R61]",
			edits: []edit{
				{replDir + "core.go", "if c.formDue() {\n\t\tc.push()\n\t}\n", ""},
				{replDir + "disk.go", "c.formDue() && c.pushed == c.seen.Get(c.me)", "c.formDue()"},
			},
			killer: killer{pkg: replCore, run: "^TestSavedHistories_OnDisks$/^has_one_of_two_events_that_were_pushed_together$"},
		},
		{
			name:   "do not take again what a disk was handing over",
			rule:   "what a disk or a former life hands over is taken once more after a panic [R29]",
			edits:  in(replDir+"resume.go", "ev != nil && !c.loading(ev)", "false"),
			killer: scenario("TestResume_WhatADiskHandsOverIsTaken"),
		},
		{
			name:   "let a disk work before its rows are held",
			rule:   "what a disk or a former life hands over is taken once more after a panic [R29]",
			edits:  in(replDir+"diskload.go", "d.holes, d.batches, d.unwritten = len(i.holes), nil, 0", "d.phase, d.holes = DiskWorking, len(i.holes)"),
			killer: scenario("TestResume_WhatADiskHandsOverIsTaken"),
		},
		{
			name:   "tell what the disk does not have yet",
			rule:   "an output waits until the disk bears it out [R60]",
			edits:  in(replDir+"diskgate.go", "return d.gates() && !e.passes", "return false"),
			killer: scenario("TestDisk_NothingIsSaidThatItDoesNotHave"),
		},
		{
			name:   "end a write before the disk has it",
			rule:   "an output waits until the disk bears it out [R60]",
			edits:  in(replDir+"diskgate.go", "e.wait == forDisk && d.gates()", "false"),
			killer: scenario("TestDisk_NothingIsSaidThatItDoesNotHave"),
		},
		{
			name:   "let a read wait for the disk",
			rule:   "questions that tell nothing do not wait [R60]",
			edits:  in(replDir+"read.go", "m.passes = want.Len() == 0", "m.passes = false"),
			killer: scenario("TestDisk_ReadsDoNotWaitForIt"),
		},
		{
			name:   "end a flush under write-behind at once",
			rule:   "with write-behind nothing waits but a flush [R60]",
			edits:  in(replDir+"diskgate.go", "e.wait == forFlush && d.phase == DiskWorking ||", ""),
			killer: scenario("TestDisk_WriteBehind"),
		},
		{
			name:   "put the rows of a large change in place at once",
			rule:   "what is too large for a batch counts once it is there whole [R61]",
			edits:  in(replDir+"diskrows.go", "redo[i] = redoOp(o)", "redo[i] = o"),
			killer: scenario("TestDisk_AChangeOfManyBatchesIsThereWholeOrNotAtAll"),
		},
		{
			name:   "count with a disk that is full",
			rule:   "a replica whose disk does not work counts in no quorum [R62]",
			edits:  in(replDir+"ops.go", "c.ready && !c.leaving && c.disk.sound()", "c.ready && !c.leaving"),
			killer: scenario("TestDisk_WithoutRoomTheWriterIsTold"),
		},
		{
			name:   "keep it to oneself that the disk is full",
			rule:   "the writer is told that the disk does not have it [R62]",
			edits:  in(replDir+"diskgate.go", "done.wait != forNothing && c.disk.ailing()", "false"),
			killer: scenario("TestDisk_WithoutRoomTheWriterIsTold"),
		},
		{
			name:   "write to a disk that has failed",
			rule:   "after a failure nothing is written until the next process [R62]",
			edits:  in(replDir+"disk.go", "return d.phase == DiskWorking || d.phase == DiskStalled || d.phase == DiskFull\n", "return d.phase != NoDisk && d.phase != DiskLoading\n"),
			killer: scenario("TestDisk_OneThatHasFailedCountsNowhere"),
		},
		{
			name:   "wait for a slow disk for ever",
			rule:   "a batch that takes too long is like a full disk [R62]",
			edits:  in(replDir+"disk.go", "c.diskIs(DiskStalled, ErrDiskSlow)", ""),
			killer: scenario("TestDisk_ASlowOneStopsCounting"),
		},
		{
			name:   "gather for a slow disk without bound",
			rule:   "what gathers is bounded [R63]",
			edits:  in(replDir+"update.go", "if c.disk.crowded() {", "if false {"),
			killer: scenario("TestDisk_WhatGathersIsBounded"),
		},
		{
			name:   "believe a vector although rows are missing",
			rule:   "the stored vector is adopted if the rows amount to the header [R22]",
			edits:  in(replDir+"load.go", "case i.state.sum != h.sum:", "case false:"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "believe a vector beside rows that cannot be read",
			rule:   "with a hole the vector is a lie [R64]",
			edits:  in(replDir+"load.go", "i.sound, i.holes = len(l.holes) == 0, l.holes; !i.sound", "i.sound, i.holes = true, l.holes; !i.sound"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "forget what was set aside",
			rule:   "what no vector covers is done again [R22a]",
			edits:  in(replDir+"diskload.go", "c.doAside(a.keys)\n", ""),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "do again all that was set aside",
			rule:   "what others have seen is not done again [R22a]",
			edits:  in(replDir+"diskload.go", "if c.seen.Covers(l.Dot) {", "if false {"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "do again once more what was set aside",
			rule:   "the batch of what is done again says that it is done [R64]",
			edits:  in(replDir+"diskload.go", "d.formed.aside, d.formed.members = d.formed.live, 1\n", ""),
			killer: scenario("TestDisk_WhatIsSetAsideIsDoneAgainOnce"),
		},
		{
			name:   "inherit a disk without its members",
			rule:   "the disk remembers the members [M2]",
			edits:  in(replDir+"diskload.go", "c.remember(ev.Old.roll.memory)\n", ""),
			killer: scenario("TestDisk_IsInherited"),
		},
		{
			name:   "take one disk for the cluster",
			rule:   "members that have kept what they acknowledged count as a majority [R65]",
			edits:  in(replDir+"diskload.go", "return have >= majorityOf(max(c.roll.size, c.cfg.MinMembers))", "return have >= 1"),
			killer: scenario("TestDisk_AHoleIsNotForgottenByARestart"),
		},
		{
			name:   "wait for all members after a power cut",
			rule:   "members that have kept what they acknowledged count as a majority [R65]",
			edits:  in(replDir+"admit.go", "c.allAnswered() || c.restarted()", "c.allAnswered()"),
			killer: scenario("TestDisk_WholeClusterRestarts"),
		},
		{
			name:   "take one whose disk stands still for one without",
			rule:   "an answer says what the sender's disk was loaded with, however that is now [R65]",
			edits:  in(replDir+"answer.go", "kept: c.disk.kept}", "kept: c.disk.keeps()}"),
			killer: scenario("TestDisk_WholeClusterRestartsOnSlowDisks"),
		},
		{
			name:   "take a disk that was never filled for a whole one",
			rule:   "what a member acknowledged is on its disk once it has counted with that disk [R65]",
			edits:  in(replDir+"diskload.go", "d.kept, d.formed.kept = h.kept, h.kept", "d.kept, d.formed.kept = h.format > 0, h.kept"),
			killer: scenario("TestDisk_AHoleIsNotForgottenByARestart"),
		},
		{
			name:   "count with the directory of a former process",
			rule:   "the disk must be that of the last incarnation [R65]",
			edits:  in(replDir+"diskload.go", "d.kept && first && d.keptAs != last", "false"),
			killer: scenario("TestDisk_AFormerDirectoryDoesNotCount"),
		},
	}
}
