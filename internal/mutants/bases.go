package main

// bases are bugs of vectors and the bases that they are told with. Rules in brackets are those of docs/replication.md.
func bases() []mutant {
	return []mutant{
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
	}
}
