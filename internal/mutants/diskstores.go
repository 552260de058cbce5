package main

// diskStores are bugs of the durable stores on real disks, and of directories that later versions are to open.
func diskStores() []mutant {
	const dir, badger, bbolt = "distributeddata/internal/disk/", "distributeddata/badger/", "distributeddata/bbolt/"
	test := func(pkg, run string) killer { return killer{pkg: "./distributeddata/" + pkg, run: "^" + run + "$"} }
	onDisks := func(run, args string) killer {
		return killer{pkg: "./distributeddata/disktest", run: "^" + run, args: args}
	}
	return []mutant{
		{
			name:   "Badger store does not sync",
			rule:   "a commit that has returned survives a loss of power",
			edits:  in(badger+"config.go", "WithSyncWrites(true)", "WithSyncWrites(false)"),
			killer: onDisks("TestPowerCut_LeavesWhatWasAcknowledged$/^badger$", "-mounts -cuts 3"),
		},
		{
			name:   "bbolt store does not sync",
			rule:   "a commit that has returned survives a loss of power",
			edits:  in(bbolt+"engine.go", "NoFreelistSync:  true,", "NoFreelistSync: true, NoSync: true,"),
			killer: onDisks("TestPowerCut_LeavesWhatWasAcknowledged$/^bbolt$", "-mounts -cuts 3"),
		},
		{
			name:   "Badger store keeps rows that were deleted when it is closed",
			rule:   "files take at most twice what the rows take that live",
			edits:  in(badger+"config.go", "WithCompactL0OnClose(true)", "WithCompactL0OnClose(false)"),
			killer: onDisks("TestSpace_IsThatOfWhatLives$/^badger$", ""),
		},
		{
			name: "store answers a group of commits before its sync",
			rule: "a commit that has returned is on the disk",
			edits: in(dir+"store.go", "err = s.attempt(all)",
				"for _, r := range all {\nr.done <- nil\nr.done = make(chan error, 1)\n}\nerr = s.attempt(all)"),
			killer: test("bbolt", "TestStore_Conforms"),
		},
		{
			name: "store splits a batch",
			rule: "a batch is there whole or not at all",
			edits: in(dir+"store.go", "return s.engine.Update(func(tx Tx) error { return s.transact(tx, all) })", `for _, r := range all {
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
			killer: test("bbolt", "TestStore_Conforms"),
		},
		{
			name:   "store does not check the checksum of a row",
			rule:   "what was not written is not read",
			edits:  in(dir+"row.go", "case binary.LittleEndian.Uint32(sealed[1:]) != checksum(key, sealed[header:]):", "case false:"),
			killer: test("badger", "TestStore_Conforms"),
		},
		{
			name:   "store does not notice that a row has vanished",
			rule:   "what was acknowledged and is not there is told",
			edits:  in(dir+"load.go", "trusted && off != s.mu.told", "trusted && false && off != s.mu.told"),
			killer: test("badger", "TestLoad_TellsOfARowThatHasVanished"),
		},
		{
			name:   "store does not compare with the anchor",
			rule:   "a log that has lost its end is told",
			edits:  in(dir+"store.go", "case last.number < reached:", "case false:"),
			killer: test("badger", "TestLoad_TellsOfALostTail"),
		},
		{
			name:   "store believes a damaged anchor",
			rule:   "what cannot be known to be whole is told",
			edits:  in(dir+"store.go", `case s.anchor.damaged != "":`, "case false:"),
			killer: test("badger", "TestLoad_TellsOfADamagedAnchor"),
		},
		{
			name:   "anchor is written over in place",
			rule:   "a torn write leaves one slot whole",
			edits:  in(dir+"anchor.go", "a.next = 1 - a.next", ""),
			killer: test("internal/disk", "TestAnchor_SurvivesATornSlot"),
		},
		{
			name:   "store goes on after a failed sync",
			rule:   "after a failure nothing is acknowledged until the directory is opened again",
			edits:  in(dir+"store.go", "if s.mu.failed == nil { // else why may be that failure itself", "if s.mu.failed = nil; false {"),
			killer: test("bbolt", "TestStore_Conforms"),
		},
		{
			name:   "store takes any error for a full disk",
			rule:   "after a failure nothing is acknowledged until the directory is opened again",
			edits:  in(dir+"store.go", "if errors.Is(err, store.ErrFull) {", "if true {"),
			killer: test("badger", "TestCommit_FailsForGoodWhenBadgerDoes"),
		},
		{
			name:   "store fails for good on a full disk",
			rule:   "commits go on when there is room",
			edits:  in(dir+"store.go", "if errors.Is(err, store.ErrFull) {", "if false {"),
			killer: test("bbolt", "TestCommit_GoesOnAfterTheDiskWasFull"),
		},
		{
			name:   "store opens what another store has written",
			rule:   "a directory of something else is refused",
			edits:  in(dir+"anchor.go", `if string(its) != "concord rows, "+kind {`, `if false && string(its) != "concord rows, "+kind {`),
			killer: test("internal/disk", "TestOpen_SaysWhatIsWrongAndTouchesNothing"),
		},
		{
			name:   "store opens what a later version has written",
			rule:   "a newer format is refused",
			edits:  in(dir+"anchor.go", "if number != format {", "if false {"),
			killer: test("internal/disk", "TestOpen_SaysWhatIsWrongAndTouchesNothing"),
		},
		{
			name:   "store begins anew beside files that have lost their anchor",
			rule:   "nothing that may be rows is taken for nothing",
			edits:  in(dir+"dir.go", "case len(left) > 0:", "case false:"),
			killer: test("internal/disk", "TestOpen_SaysWhatIsWrongAndTouchesNothing"),
		},
		{
			name:   "Badger opens tables that nobody has read",
			rule:   "damage never ends the process",
			edits:  in(badger+"store.go", "if err := verify(o); err != nil {", "if err := error(nil); err != nil {"),
			killer: onDisks("TestDamage_IsFoundOrHarmless$/^badger$", "-damages 60"),
		},
		{
			name:   "take a log that was being made or deleted for damage",
			rule:   "a kill at any moment leaves a directory that opens",
			edits:  in(badger+"store.go", "if err := tidy(dir); err != nil {", "if err := error(nil); err != nil {"),
			killer: test("badger", "TestKill_WhileALogIsMadeOrDeleted"),
		},
		{
			name:   "bbolt opens a tree that nobody has read",
			rule:   "damage is found or harmless",
			edits:  in(bbolt+"engine.go", "case errors.Is(err, io.EOF):\n\t\t\treturn otherDamaged, nil", "case err != nil, errors.Is(err, io.EOF):\n\t\t\treturn otherDamaged, nil"),
			killer: test("bbolt", "TestOpen_RefusesWhatIsNotATree"),
		},
		{
			name:   "bbolt falls back to the commit before and does not say so",
			rule:   "what was acknowledged and is not there is told",
			edits:  in(bbolt+"store.go", "if newestDamaged {", "if newestDamaged && false {"),
			killer: test("bbolt", "TestLoad_TellsOfADamagedHead"),
		},
		{
			name:   "rows are sealed in another way",
			rule:   "every later version opens the directories of this one",
			edits:  in(dir+"row.go", "version = 1\n", "version = 2\n"),
			killer: test("disktest", "TestGolden_DirectoriesOfEveryFormatAreRead"),
		},
		{
			name:   "atoms are kept under another letter",
			rule:   "every later version opens the directories of this one",
			edits:  in(replDir+"rows.go", "rowAtom  = 'a'", "rowAtom  = 'c'"),
			killer: test("disktest", "TestGolden_ReplicasOfEveryFormatStartAgain"),
		},
		{
			name:   "a majority with its disks waits for volatile keys that there cannot be",
			rule:   "what was acknowledged at a majority is there once a majority is",
			edits:  in("distributeddata/published.go", "(p.ready || p.choice.all())", "p.ready"),
			killer: killer{pkg: "./distributeddata", run: "^TestDurable_AMajorityIsReadyWithoutTheRest$"},
		},
	}
}
