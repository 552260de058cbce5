package main

// disks are bugs of replicas that keep their data on disks.
func disks() []mutant {
	return []mutant{
		{
			name: "write some of the events of a push to the disk",
			rule: "events that are pushed together reach the disk together [R47]",
			edits: []edit{
				{"distributeddata", "if c.disk.formDue(c.now, c.herald().current()) {\n\t\tc.push()\n\t}\n", ""},
				{"distributeddata", "d.formDue(s.now, p) && pushed == p.Own()", "d.formDue(s.now, p)"},
			},
			killer: killer{pkg: replCore, run: "^TestSavedHistories_OnDisks$/^has_one_of_two_events_that_were_pushed_together$"},
		},
		{
			name:   "do not process the rows of a disk again after a panic",
			rule:   "after a panic, a replica processes the input from its disk and from former incarnations again [R41]",
			edits:  in("distributeddata", "if n.taking != nil {", "if false {"),
			killer: scenario("TestResume_WhatADiskHandsOverIsTaken"),
		},
		{
			name:   "let a disk work before its rows are loaded",
			rule:   "after a panic, a replica processes the input from its disk and from former incarnations again [R41]",
			edits:  in("distributeddata", "d.holes, d.batches, d.unwritten = len(i.holes), nil, 0", "d.phase, d.holes = DiskWorking, len(i.holes)"),
			killer: scenario("TestResume_WhatADiskHandsOverIsTaken"),
		},
		{
			name:   "send state that the disk does not have yet",
			rule:   "an output waits until the disk holds the state that it reveals [R46]",
			edits:  in("distributeddata", "return d.gates() && !e.passes", "return false"),
			killer: scenario("TestDisk_NothingIsSaidThatItDoesNotHave"),
		},
		{
			name:   "replace the record before the disk has what the member knows",
			rule:   "an output waits until the disk holds the state that it reveals [R46]",
			edits:  in("distributeddata", "case SwapRecord:\n\t\treturn d.gates()", "case SwapRecord:\n\t\treturn false"),
			killer: scenario("TestDisk_ARecordIsReplacedWhenTheDiskHasEverything"),
		},
		{
			name:   "complete a write before the disk has it",
			rule:   "an output waits until the disk holds the state that it reveals [R46]",
			edits:  in("distributeddata", "e.wait == forDisk && d.gates()", "false"),
			killer: scenario("TestDisk_NothingIsSaidThatItDoesNotHave"),
		},
		{
			name:   "complete a linearizable read before the disk has it",
			rule:   "an output waits until the disk holds the state that it reveals [R46]",
			edits:  in("distributeddata", "case *writes, *cover, *confirm:", "case *writes, *cover:"),
			killer: scenario("TestDisk_WhatOthersWroteIsConfirmedWhenItHasIt"),
		},
		{
			name:   "complete an update without changes before the disk has what it observed",
			rule:   "an output waits until the disk holds the state that it reveals [R46]",
			edits:  in("distributeddata", "case *writes, *cover, *confirm:", "case *writes, *confirm:"),
			killer: scenario("TestDisk_WhatOthersWroteIsConfirmedWhenItHasIt"),
		},
		{
			name:   "take pushes while too much waits for the disk",
			rule:   "the changes that wait for the disk are bounded [R49]",
			edits:  in("distributeddata", "if c.disk.crowded() {\n\t\t\treturn // the", "if false {\n\t\t\treturn // the"),
			killer: scenario("TestDisk_WhatGathersIsBounded"),
		},
		{
			name:   "let a read wait for the disk",
			rule:   "questions that reveal nothing do not wait [R46]",
			edits:  in("distributeddata", "passes: want.Len() == 0", "passes: false"),
			killer: scenario("TestDisk_ReadsDoNotWaitForIt"),
		},
		{
			name:   "complete a flush under write-behind at once",
			rule:   "with write-behind only Flush waits [R46]",
			edits:  in("distributeddata", "e.wait == forFlush && d.phase == DiskWorking ||", ""),
			killer: scenario("TestDisk_WriteBehind"),
		},
		{
			name:   "put the rows of a large change in place at once",
			rule:   "a change that is too large for a batch counts only when it is written completely [R47]",
			edits:  in("distributeddata", "redo[i] = redoOp(o)", "redo[i] = o"),
			killer: scenario("TestDisk_AChangeOfManyBatchesIsThereWholeOrNotAtAll"),
		},
		{
			name:   "count with a full disk",
			rule:   "a replica whose disk does not work counts in no quorum [R48]",
			edits:  in("distributeddata", "return r.ready && !r.withdrawn && d.sound()", "return r.ready && !r.withdrawn"),
			killer: scenario("TestDisk_WithoutRoomTheWriterIsTold"),
		},
		{
			name:   "do not report a full disk to the writer",
			rule:   "the writer gets an error if the disk does not have its change [R48]",
			edits:  in("distributeddata", "done.wait != forNothing && d.ailing()", "false"),
			killer: scenario("TestDisk_WithoutRoomTheWriterIsTold"),
		},
		{
			name:   "write to a failed disk",
			rule:   "after a failure nothing is written until the next process starts [R48]",
			edits:  in("distributeddata", "return d.phase == DiskWorking || d.phase == DiskStalled || d.phase == DiskFull\n", "return d.phase != NoDisk && d.phase != DiskLoading\n"),
			killer: scenario("TestDisk_OneThatHasFailedCountsNowhere"),
		},
		{
			name:   "drop the pushes that wait for a disk that fails",
			rule:   "a change that the disk does not have spreads [R48]",
			edits:  in("distributeddata", "if e.Manifest == wire.ReplicatorPush {\n\t\t\t\ts.emit(e)", "if e.Manifest == wire.ReplicatorPush && s.restored {\n\t\t\t\ts.emit(e)"),
			killer: scenario("TestDisk_PushesOfOneThatHasFailedAreSent"),
		},
		{
			name:   "wait for a slow disk forever",
			rule:   "a batch that takes too long is handled like a full disk [R48]",
			edits:  in("distributeddata", "c.cluster().diskIs(DiskStalled, ErrDiskSlow, &c.out)", ""),
			killer: scenario("TestDisk_ASlowOneStopsCounting"),
		},
		{
			name:   "queue changes for a slow disk without a bound",
			rule:   "the changes that wait for the disk are bounded [R49]",
			edits:  in("distributeddata", "if c.disk.crowded() {\n\t\tc.answer(ev", "if false {\n\t\tc.answer(ev"),
			killer: scenario("TestDisk_WhatGathersIsBounded"),
		},
		{
			name:   "accept a vector although rows are missing",
			rule:   "the stored vector is adopted only if the rows match the header [R50]",
			edits:  in("distributeddata", "case i.state.Sum != h.sum:", "case false:"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "accept a vector although some rows cannot be read",
			rule:   "if a row is missing or unreadable, the vector is wrong [R51]",
			edits:  in("distributeddata", "i.sound, i.holes = len(l.holes) == 0, l.holes; !i.sound", "i.sound, i.holes = true, l.holes; !i.sound"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "delete the rows of what only a damaged disk had",
			rule:   "additions that no other member has stay in the store, and are named [R51]",
			edits:  in("distributeddata", "uncovered[key] = true", "_ = key"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "name what other members have as lost",
			rule:   "only atoms that the refilled vector does not cover are named [R51]",
			edits:  in("distributeddata", "return ok && !seen.Covers(l.Dot)", "return ok && l.N > 0"),
			killer: scenario("TestDisk_HoleInStoreRefillsInsteadOfDeleting"),
		},
		{
			name:   "inherit a disk without its members",
			rule:   "the disk stores the memory of members [M2]",
			edits:  in("distributeddata", "c.cluster().remember(old.members.Memory)\n", ""),
			killer: scenario("TestDisk_IsInherited"),
		},
		{
			name:   "accept one complete disk as enough for the cluster",
			rule:   "members that kept everything they acknowledged must form a majority [R52]",
			edits:  in("distributeddata", "return have >= quorum.MajorityOf(max(r.Counted(), r.Least()))", "return have >= 1"),
			killer: scenario("TestDisk_AHoleIsNotForgottenByARestart"),
		},
		{
			name:   "wait for all members after a power cut",
			rule:   "members that kept everything they acknowledged count once they form a majority [R52]",
			edits:  in("distributeddata", "r.allAnswered(ps) || r.restarted(now, ps, d, patience)", "r.allAnswered(ps)"),
			killer: scenario("TestDisk_WholeClusterRestarts"),
		},
		{
			name:   "treat a disk that was never filled as complete",
			rule:   "a disk is complete only after its member has counted with its contents [R52]",
			edits:  in("distributeddata", "d.kept, d.formed.kept, d.next, d.formed.next = h.kept,", "d.kept, d.formed.kept, d.next, d.formed.next = h.format > 0,"),
			killer: scenario("TestDisk_AHoleIsNotForgottenByARestart"),
		},
		{
			name:   "count with the directory of a former process",
			rule:   "the disk must belong to the last incarnation of the member [R52]",
			edits:  in("distributeddata", "own != me && !slices.Contains(d.keptAs[:], own)", "false"),
			killer: scenario("TestDisk_AFormerDirectoryDoesNotCount"),
		},
		{
			name:   "record a new member without a disk",
			rule:   "a member whose disk has failed speaks under no memory [M3]",
			edits:  in("distributeddata", "d.ailing() && (r.counted", "false && (r.counted"),
			killer: scenario("TestDisk_ThatHasFailedRecordsNoNewMember"),
		},
		{
			name:   "take the place before the disk knows it",
			rule:   "others hear of a place when the disk knows it [R52]",
			edits:  in("distributeddata", "if !c.disk.foretold(next) {", "if false {"),
			killer: scenario("TestDisk_ThatFailsAtTheStartCountsAfterTheNext"),
		},
		{
			name:   "leave before the disk has everything",
			rule:   "a member without others leaves when its disk has its updates [R46]",
			edits:  in("distributeddata", "case *leave:\n\t\treturn forFlush", "case *leave:\n\t\treturn forNothing"),
			killer: scenario("TestDisk_TheLastOneLeavesWhenItsDiskHasEverything"),
		},
	}
}
