package main

// diskStores are bugs of the durable stores on real disks, and of directories that later versions
// must be able to open.
func diskStores() []mutant {
	test := func(pkg, run string) killer { return killer{pkg: pkg, run: "^" + run + "$"} }
	onDisks := func(run, args string) killer {
		return killer{pkg: "./lab/disktest", run: "^" + run, args: args}
	}
	return []mutant{
		{
			name:   "Badger store does not sync",
			rule:   "a commit that has returned survives a power cut",
			edits:  in("distributeddata", "WithSyncWrites(true)", "WithSyncWrites(false)"),
			killer: onDisks("TestPowerCut_LeavesWhatWasAcknowledged$/^badger$", "-mounts -cuts 3"),
		},
		{
			name:   "bbolt store does not sync",
			rule:   "a commit that has returned survives a power cut",
			edits:  in("distributeddata", "NoFreelistSync:  true,", "NoFreelistSync: true, NoSync: true,"),
			killer: onDisks("TestPowerCut_LeavesWhatWasAcknowledged$/^bbolt$", "-mounts -cuts 3"),
		},
		{
			name:   "Badger store keeps deleted rows when it is closed",
			rule:   "the files take at most twice the space of the live rows",
			edits:  in("distributeddata", "WithCompactL0OnClose(true)", "WithCompactL0OnClose(false)"),
			killer: onDisks("TestSpace_IsThatOfWhatLives$/^badger$", ""),
		},
		{
			name:   "Badger store repeats a failed flush without end when it is closed",
			rule:   "a store closes on a disk that takes no more writes",
			edits:  in("distributeddata", "runtime.Goexit() // Close would never return", "runtime.Gosched()"),
			killer: test("./distributeddata/badger", "TestClose_EndsWhenNoTableCanBeWritten"),
		},
		{
			name:   "Badger store accepts commits while no table can be written",
			rule:   "commits are refused as on a full disk, and go on when tables can be written",
			edits:  in("distributeddata", "return e.flushing()\n", "return nil\n"),
			killer: test("./distributeddata/badger", "TestCommit_IsRefusedWhileNoTableCanBeWritten"),
		},
		{
			name:   "a store that closes reports a removed directory as readable by others",
			rule:   "a log line names the fault that there is",
			edits:  in("distributeddata", "if errors.Is(err, os.ErrNotExist) {\n\t\treturn nil\n\t} else if err", "if err"),
			killer: test("./distributeddata/internal/disk", "TestClose_OfARemovedDirectoryLogsNothing"),
		},
		{
			name:   "allocate what a damaged length in the registry of keys says",
			rule:   "opening a damaged directory allocates no more than opening a whole one",
			edits:  in("distributeddata", "if n > uint64(len(raw)) {", "if n > uint64(len(raw)) && false {"),
			killer: test("./distributeddata/badger", "TestKey_ADamagedLengthIsNotAllocated"),
		},
		{
			name: "store answers a group of commits before its sync",
			rule: "a commit that has returned is on the disk",
			edits: in("distributeddata", "err = s.attempt(all)",
				"for _, r := range all {\nr.done <- nil\nr.done = make(chan error, 1)\n}\nerr = s.attempt(all)"),
			killer: test("./distributeddata/bbolt", "TestStore_Conforms"),
		},
		{
			name: "store splits a batch",
			rule: "a batch is applied completely or not at all",
			edits: in("distributeddata", "return s.engine.Update(func(tx Tx) error { return s.transact(tx, all) })", `for _, r := range all {
			for o := range r.batch.Ops() {
				one := &store.Batch{}
				if o.Delete {
					one.Delete(o.Key)
				} else {
					one.Put(o.Key, o.Value)
				}
				part := []*request{{batch: one}}
				if err := s.engine.Update(func(tx Tx) error { return s.transact(tx, part) }); err != nil {
					return err
				}
			}
		}
		return nil`),
			killer: test("./distributeddata/bbolt", "TestStore_Conforms"),
		},
		{
			name:   "store does not verify the checksum of a row",
			rule:   "a read returns only rows that were written",
			edits:  in("distributeddata", "case binary.LittleEndian.Uint32(sealed[1:]) != checksum(key, sealed[header:]):", "case false:"),
			killer: test("./distributeddata/badger", "TestStore_Conforms"),
		},
		{
			name:   "store does not detect a missing row",
			rule:   "Load reports acknowledged rows that are missing",
			edits:  in("distributeddata", "trusted && off != s.mu.told", "trusted && false && off != s.mu.told"),
			killer: test("./distributeddata/badger", "TestLoad_TellsOfARowThatHasVanished"),
		},
		{
			name:   "store does not compare its log with the anchor",
			rule:   "Load reports a log that has lost its tail",
			edits:  in("distributeddata", "case last.number < reached:", "case false:"),
			killer: test("./distributeddata/badger", "TestLoad_TellsOfALostTail"),
		},
		{
			name:   "store accepts a damaged anchor",
			rule:   "Load reports a directory that may be incomplete",
			edits:  in("distributeddata", `case s.anchor.damaged != "":`, "case false:"),
			killer: test("./distributeddata/badger", "TestLoad_TellsOfADamagedAnchor"),
		},
		{
			name:   "store mends a damaged anchor when it closes",
			rule:   "damage is reported until a commit follows it",
			edits:  in("distributeddata", "s.anchor.number = s.last.number // written with the next commit", ""),
			killer: test("./distributeddata/badger", "TestLoad_TellsOfADamagedAnchor"),
		},
		{
			name:   "store overwrites the anchor in place",
			rule:   "a torn write leaves one slot intact",
			edits:  in("distributeddata", "a.next = 1 - a.next", ""),
			killer: test("./distributeddata/internal/disk", "TestAnchor_SurvivesATornSlot"),
		},
		{
			name:   "store continues after a failed sync",
			rule:   "after a failure no commit succeeds until the directory is opened again",
			edits:  in("distributeddata", "if s.mu.failed == nil { // otherwise why may wrap that failure", "if s.mu.failed = nil; false {"),
			killer: test("./distributeddata/bbolt", "TestStore_Conforms"),
		},
		{
			name:   "store treats every error as a full disk",
			rule:   "after a failure no commit succeeds until the directory is opened again",
			edits:  in("distributeddata", "if errors.Is(err, store.ErrFull) {", "if true {"),
			killer: test("./distributeddata/badger", "TestCommit_FailsForGoodWhenBadgerDoes"),
		},
		{
			name:   "store fails permanently on a full disk",
			rule:   "commits succeed again when there is room",
			edits:  in("distributeddata", "if errors.Is(err, store.ErrFull) {", "if false {"),
			killer: test("./distributeddata/bbolt", "TestCommit_GoesOnAfterTheDiskWasFull"),
		},
		{
			name:   "store opens a directory that another store has written",
			rule:   "a directory of another kind is refused",
			edits:  in("distributeddata", `if string(its) != "concord rows, "+a.kind {`, `if false && string(its) != "concord rows, "+a.kind {`),
			killer: test("./distributeddata/internal/disk", "TestOpen_SaysWhatIsWrongAndTouchesNothing"),
		},
		{
			name:   "store opens a directory that a later version has written",
			rule:   "a newer format is refused",
			edits:  in("distributeddata", "if number != format {", "if false {"),
			killer: test("./distributeddata/internal/disk", "TestOpen_SaysWhatIsWrongAndTouchesNothing"),
		},
		{
			name:   "store starts empty next to files that have lost their anchor",
			rule:   "files that may contain rows are never treated as an empty directory",
			edits:  in("distributeddata", "case len(left) > 0:", "case false:"),
			killer: test("./distributeddata/internal/disk", "TestOpen_SaysWhatIsWrongAndTouchesNothing"),
		},
		{
			name:   "Badger opens tables that were not verified",
			rule:   "damage never ends the process",
			edits:  in("distributeddata", "if err := verify(o); err != nil {", "if err := error(nil); err != nil {"),
			killer: onDisks("TestDamage_IsFoundOrHarmless$/^badger$", "-damages 60"),
		},
		{
			name:   "store treats a log that was being created or deleted as damage",
			rule:   "the directory opens after a kill at any moment",
			edits:  in("distributeddata", "if err := tidy(dir); err != nil {", "if err := error(nil); err != nil {"),
			killer: test("./distributeddata/badger", "TestKill_WhileALogIsMadeOrDeleted"),
		},
		{
			name:   "bbolt opens a tree that was not verified",
			rule:   "damage is detected or harmless",
			edits:  in("distributeddata", "case errors.Is(err, io.EOF):\n\t\t\treturn otherDamaged, nil", "case err != nil, errors.Is(err, io.EOF):\n\t\t\treturn otherDamaged, nil"),
			killer: test("./distributeddata/bbolt", "TestOpen_RefusesWhatIsNotATree"),
		},
		{
			name:   "bbolt falls back to the previous commit without a report",
			rule:   "Load reports acknowledged rows that are missing",
			edits:  in("distributeddata", "if newestDamaged {", "if newestDamaged && false {"),
			killer: test("./distributeddata/bbolt", "TestLoad_TellsOfADamagedHead"),
		},
		{
			name:   "rows are sealed in another format",
			rule:   "every later version opens the directories of this version",
			edits:  in("distributeddata", "version = 1\n", "version = 2\n"),
			killer: test("./lab/disktest", "TestGolden_DirectoriesOfEveryFormatAreRead"),
		},
		{
			name:   "atoms are stored under another prefix",
			rule:   "every later version opens the directories of this version",
			edits:  in("distributeddata", "rowAtom  = 'a'", "rowAtom  = 'c'"),
			killer: test("./lab/disktest", "TestGolden_ReplicasOfEveryFormatStartAgain"),
		},
		{
			name:   "a majority with disks waits for volatile keys although there can be none",
			rule:   "everything acknowledged at a majority is available once a majority is running",
			edits:  in("distributeddata", "(p.ready || p.durableKeys.all())", "p.ready"),
			killer: killer{pkg: "./distributeddata", run: "^TestDurable_AMajorityIsReadyWithoutTheRest$"},
		},
	}
}
