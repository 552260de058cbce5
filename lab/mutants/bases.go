package main

// bases are bugs of vectors and of the bases by which messages refer to them. Rules in brackets are
// those of docs/replication.md.
func bases() []mutant {
	return []mutant{
		{
			name:   "read the differences from one base against another base",
			rule:   "a message states a vector as a base and the entries that differ from it [R37]",
			edits:  in("distributeddata", "if k.Is(name) {", "if len(name) > 0 {"),
			killer: histories("40"),
		},
		{
			name:   "omit entries that only the base has",
			rule:   "a message states a vector as a base and the entries that differ from it [R37]",
			edits:  in("distributeddata", "ids, numbers = append(ids, r), append(numbers, n[0])\n", "if n[0] > 0 {\n\t\t\t\tids, numbers = append(ids, r), append(numbers, n[0])\n\t\t\t}\n"),
			killer: killer{pkg: "./distributeddata/internal/bases", run: "TestBase_ToldAndReadIsTheSameVector"},
		},
		{
			name:   "never adopt the base of another member",
			rule:   "members come to use one base without an agreement [R38]",
			edits:  in("distributeddata", "if k.better(s.own) && k.vector.Leq(seen) {", "if false {"),
			killer: scenario("TestBase_MembersComeToUseTheSame"),
		},
		{
			name:   "never renew the base",
			rule:   "a replica adds departed replicas to its base [R38]",
			edits:  in("distributeddata", "if len(gone) >= renewAt {", "if false {"),
			killer: scenario("TestBase_TakesInWhatHasGone"),
		},
		{
			name:   "build a renewed base from the last departed replicas alone",
			rule:   "a renewed base keeps the entries of the former one [R38]",
			edits:  in("distributeddata", "s.Use(now, s.own.vector.Apply(gone), seen)", "s.Use(now, causal.MakeVector(gone...), seen)"),
			killer: scenario("TestBase_TakesInWhatHasGone"),
		},
		{
			name:   "accept a base without checking its digest",
			rule:   "a replica accepts a base only if its digest is the requested one [R39]",
			edits:  in("distributeddata", "if b.digest != f.digest || ", "b.digest = f.digest\n\tif "),
			killer: scenario("TestBase_AForgedOneIsRefused"),
		},
		{
			name:   "drop a message with an unknown base",
			rule:   "a message waits for its base [R39]",
			edits:  in("distributeddata", "if kept = len(s.wait.messages) < l.Count && ", "if kept = false && "),
			killer: scenario("TestBase_AnUnknownOneIsAskedForWhileTheMessageWaits"),
		},
		{
			name:   "keep every message with an unknown base",
			rule:   "the number of messages that wait for a base is bounded [R39]",
			edits:  in("distributeddata", "if kept = len(s.wait.messages) < l.Count && ", "if kept = "),
			killer: scenario("TestBase_WhatWaitsIsBounded"),
		},
		{
			name:   "do not request a lost part of a base again",
			rule:   "a replica requests a missing part of a base again [R39]",
			edits:  in("distributeddata", "if reachable && now.Before(f.deadline) {\n\t\treturn true\n", "if reachable && now.Before(f.deadline) {\n\t\treturn false\n"),
			killer: scenario("TestBase_ALostPartIsAskedForAgain"),
		},
		{
			name:   "resend a base from the beginning after a loss",
			rule:   "an interrupted transfer of a base continues [R39]",
			edits:  in("distributeddata", "if r <= m.After {\n\t\t\tcontinue\n\t\t}\n", ""),
			killer: scenario("TestBase_ALostPartIsAskedForAgain"),
		},
		{
			name:   "encode everything that the replicator has seen with each value",
			rule:   "the encoding of a value names only the replicas of its atoms [R37]",
			edits:  in("crdt", "a.seen = a.store.Named(a.seen)", ""),
			killer: killer{pkg: "./crdt", run: "TestSnapshot_NamesTheReplicasOfItsAtoms"},
		},
		{
			name:   "return a vector from a join if only its left half is unchanged",
			rule:   "the join of two vectors covers everything that either covers",
			edits:  in("internal", "case left == a.left && right == a.right:\n\t\treturn a", "case left == a.left:\n\t\treturn a"),
			killer: killer{pkg: "./internal/causal", run: "TestVector_"},
		},
	}
}
