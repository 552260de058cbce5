package main

// strangers are bugs of the defences against strangers: the guard, and what members accept from a
// hello.
func strangers() []mutant {
	const pkg = "./node/internal/guard"
	const membersPkg = "./internal/membership"
	return []mutant{
		{
			name:   "a connection without a stream stays open",
			rule:   "connections, streams, senders, watches and calls are bounded",
			edits:  in("node", "\t\t\tMaxConnectionIdle: maxIdle}),", "\t\t}),"),
			killer: killer{pkg: "./node", run: "^TestServer_ClosesAnIdleConnection$"},
		},
		{
			name:   "a Terminated message for another member's actor is accepted",
			rule:   "a peer reports and watches only its own actors",
			edits:  in("node", "if pid.GetAddress() == c.peer {", "if pid.GetAddress() != \"\" {"),
			killer: killer{pkg: pkg, run: "^TestForged_NobodySpeaksForAnotherMember$"},
		},
		{
			name:   "a peer can send in the name of any member",
			rule:   "a message of this module carries the name of its sender",
			edits:  in("node", "case at != \"\" && at != c.peer:", "case at == \"no address\":"),
			killer: killer{pkg: pkg, run: "^TestForged_"},
		},
		{
			name:   "a hello can introduce any address",
			rule:   "a hello names the address of its sender",
			edits:  in("node", "helloAddress(payload) != c.peer:", "helloAddress(payload) != c.peer && false:"),
			killer: killer{pkg: pkg, run: "^TestForged_"},
		},
		{
			name:   "messages for other members are forwarded",
			rule:   "a member does not relay messages",
			edits:  in("node", "case address != c.self && address != local:", "case address == \"\":"),
			killer: killer{pkg: pkg, run: "^TestRelay_"},
		},
		{
			name:   "a member vouches for streams to other members",
			rule:   "the proof of a stream names both of its ends",
			edits:  in("node", "return o.to[n] == to && to != \"\"", "return o.to[n] != \"\""),
			killer: killer{pkg: pkg, run: "^TestVouch_TheStreamIsOne$"},
		},
		{
			name:   "a call to a peer that does not answer takes a minute",
			rule:   "a peer that cannot be called back is refused in time",
			edits:  in("node", "context.WithTimeout(ctx, vouchFor)", "context.WithTimeout(ctx, time.Minute)"),
			killer: killer{pkg: pkg, run: "^TestVouch_APeerThatCannotBeCalledBackIsRefused$"},
		},
		{
			name:   "a peer that cannot be called back is not asked again",
			rule:   "a peer that was refused is verified anew",
			edits:  in("node", "\tk.hangUp()\n\tdelete(c.calls, address)\n", "\tk.waiting = maxPerAddress\n"),
			killer: killer{pkg: pkg, run: "^TestVouch_APeerThatCannotBeCalledBackIsRefused$"},
		},
		{
			name:   "TLS and secret files are examined at every handshake",
			rule:   "files are examined at most once a second",
			edits:  in("node", "if now.Sub(l.at) < lookEvery {", "if now.Sub(l.at) < 0 {"),
			killer: killer{pkg: pkg, run: "^TestFiles_AreReadAtMostOnceASecond$"},
		},
		{
			name:   "a connection ends when the certificate of its peer expires",
			rule:   "a connection continues with the certificate with which it began",
			edits:  in("node", "\treturn out, &withConn{info, c}, nil", "\tif p := peerCertificate(info); p != nil {\n\t\ttime.AfterFunc(time.Until(p.NotAfter), func() { _ = c.Close() })\n\t}\n\treturn out, &withConn{info, c}, nil"),
			killer: killer{pkg: pkg, run: "^TestTLS_AConnectionOutlivesItsCertificate$"},
		},
		{
			name:   "a peer saves up its rate without limit",
			rule:   "a flooding peer gets its rate and no more",
			edits:  in("node", "if saved := now.Add(-burst); p.free.Before(saved) {", "if saved := now.Add(-burst); p.free.IsZero() {"),
			killer: killer{pkg: pkg, run: "^TestPace_"},
		},
		{
			name:   "seals are not verified",
			rule:   "with a secret, only messages of members are heard",
			edits:  in("node", "msg[len(body):]) != 1 {", "msg[len(body):]) < 0 {"),
			killer: killer{pkg: pkg, run: "^TestSecret_OthersAreNotHeard$"},
		},
		{
			name: "the seals of a stream do not depend on the number of the message",
			rule: "a message cannot be replayed or omitted",
			edits: []edit{
				{"node", "\tsum := s.sum(msg)\n\ts.next++\n", "\tsum := s.sum(msg)\n"},
				{"node", "\t\treturn errSeal\n\t}\n\ts.next++\n", "\t\treturn errSeal\n\t}\n"},
			},
			killer: killer{pkg: pkg, run: "^TestSecret_AStreamIsAsItWasSent$"},
		},
		{
			name:   "only the first answer on a stream is checked",
			rule:   "a message cannot be replayed or omitted",
			edits:  in("node", "if err := o.unseal(f.data); err != nil {", "if err := o.unseal(f.data); err != nil && o.onwards == nil {"),
			killer: killer{pkg: pkg, run: "^TestSecret_AnswersAreAsTheyWereSent$"},
		},
		{
			name:   "the first message of a stream has any size",
			rule:   "a message is checked against its bounds before it is decoded",
			edits:  in("node", "if len(data) > maxFirst {", "if len(data) < 0 {"),
			killer: killer{pkg: pkg, run: "^TestStream_MustBegin$"},
		},
		{
			name:   "the certificate of a member is valid for its whole host",
			rule:   "a URI in a certificate restricts it to an address",
			edits:  in("node", "err == nil && !exact &&", "err == nil && (!exact || true) &&"),
			killer: killer{pkg: pkg, run: "^TestTLS_ACertificateSpeaksForItsMemberOnly$"},
		},
		{
			name: "any certificate is accepted",
			rule: "a client presents a certificate of a trusted authority",
			edits: []edit{
				{"node", "tls.RequireAndVerifyClientCert", "tls.RequireAnyClientCert"},
				{"node", "len(t.State.VerifiedChains) > 0", "len(t.State.PeerCertificates) > 0"},
			},
			killer: killer{pkg: pkg, run: "^TestTLS_StrangersAreNotHeard$"},
		},
		{
			name:   "a message with any number of envelopes is decoded",
			rule:   "a message is checked against its bounds before it is decoded",
			edits:  in("node", "if s.envelopes > limit {", "if s.envelopes < 0 {"),
			killer: killer{pkg: pkg, run: "^TestBounds_MemoryIsInProportion$"},
		},
		{
			name:   "a message of tiny elements is decoded",
			rule:   "a decoded message takes at most 16 times its encoded size",
			edits:  in("node", "if a.memory -= n; a.memory < 0 {", "if a.memory -= n; a.memory < -1<<40 {"),
			killer: killer{pkg: pkg, run: "^TestBounds_AMessageOfTinyElementsIsNotDecoded$"},
		},
		{
			name:   "elements of a list take no memory",
			rule:   "a decoded message takes at most 16 times its encoded size",
			edits:  in("node", "return element * 9 / 4", "return element * 0"),
			killer: killer{pkg: pkg, run: "^TestBounds_TheEstimateFitsTheDecoder$"},
		},
		{
			name:   "a stranger's message has any number of fields",
			rule:   "a batch of a stranger takes little processor time",
			edits:  in("node", "if *a.fields--; *a.fields < 0 {", "if *a.fields--; *a.fields < -1<<40 {"),
			killer: killer{pkg: pkg, run: "^TestBounds_OfAStranger$"},
		},
		{
			name:   "small messages of a stranger are not weighed",
			rule:   "a batch of a stranger takes little processor time",
			edits:  in("node", "return budget{unweighed: maxStrangeExtra,", "return budget{unweighed: math.MaxInt,"),
			killer: killer{pkg: pkg, run: "^TestBounds_OfAStranger$"},
		},
		{
			name:   "a stranger's batch has any size",
			rule:   "a batch of a stranger takes little processor time",
			edits:  in("node", "if len(data) > maxStrangeBatch && ", "if len(data) < 0 && "),
			killer: killer{pkg: pkg, run: "^TestBounds_OfAStranger$"},
		},
		{
			name:   "a stranger's message to this module has any size",
			rule:   "a batch of a stranger takes little processor time",
			edits:  in("node", "if len(data) > maxStrangeOurs && ", "if len(data) < 0 && "),
			killer: killer{pkg: pkg, run: "^TestBounds_OfAStranger$"},
		},
		{
			name:   "members have the bounds of strangers",
			rule:   "what members send is bounded by its size only",
			edits:  in("node", "	if member {", "	if member && false {"),
			killer: killer{pkg: pkg, run: "^TestBounds_OfAStranger$"},
		},
		{
			name:   "Proto.Actor's own actors receive every message",
			rule:   "members send a few types to Proto.Actor's own actors",
			edits:  in("node", "\tif to.host {", "\tif to.host && false {"),
			killer: killer{pkg: pkg, run: "^TestForged_ActorsOfProtoActorBelieveNoStranger$"},
		},
		{
			name:   "gossip of strangers reaches Proto.Actor",
			rule:   "Proto.Actor's own actors believe members only",
			edits:  in("node", "case t.host || !c.guard.public(id):", "case !t.host && !c.guard.public(id):"),
			killer: killer{pkg: pkg, run: "^TestForged_ActorsOfProtoActorBelieveNoStranger$"},
		},
		{
			name:   "an activation of an unknown kind reaches Proto.Actor",
			rule:   "an activation names a kind that runs here",
			edits:  in("node", "\t\t!c.guard.process.runs(", "\t\tfalse && !c.guard.process.runs("),
			killer: killer{pkg: pkg, run: "^TestForged_ActorsOfProtoActorBelieveNoStranger$"},
		},
		{
			name:   "a peer has any number of connections",
			rule:   "a peer displaces its own connections",
			edits:  in("node", "if mine.Len() > maxPerPeer {", "if mine.Len() < 0 {"),
			killer: killer{pkg: pkg, run: "^TestConns_APeerDisplacesItsOwn$"},
		},
		{
			name:   "members have any number of connections",
			rule:   "connections, streams, senders, watches and calls are bounded",
			edits:  in("node", " || len(cs.mu.open) > maxConns", ""),
			killer: killer{pkg: pkg, run: "^TestConns_AreBounded$"},
		},
		{
			name:   "strangers have any number of connections",
			rule:   "strangers displace strangers",
			edits:  in("node", "if cs.mu.strange.Len() > maxStrange {", "if cs.mu.strange.Len() < 0 {"),
			killer: killer{pkg: pkg, run: "^TestConns_APeerDisplacesItsOwn$"},
		},
		{
			name:   "each stream of a stranger has its own watches",
			rule:   "all strangers together have a bounded number of watches",
			edits:  in("node", "add = c.guard.strangers.watch", "add = c.watches.add"),
			killer: killer{pkg: pkg, run: "^TestStrangers_AreBoundedTogether$"},
		},
		{
			name:   "an index of a batch may be one too large",
			rule:   "the indices of a batch are within their ranges",
			edits:  in("node", "int(e.Target) >= len(b.Targets)", "int(e.Target) > len(b.Targets)"),
			killer: killer{pkg: pkg, run: "^TestBatch_IndicesAreInRange$"},
		},
		{
			name:   "a file without a secret is used",
			rule:   "a file of secrets holds one or two, of 16 to 1024 bytes",
			edits:  in("node", "if len(out) == 0 {", "if len(out) < 0 {"),
			killer: killer{pkg: pkg, run: "^TestSecret_FilesThatCannotBeUsed$"},
		},
		{
			name:   "a watch counts after its unwatch",
			rule:   "a member may watch any number of actors, one after another",
			edits:  in("node", "\t\tc.watches.remove(w.Watcher, to.id)\n", ""),
			killer: killer{pkg: pkg, run: "^TestWatches_AreBounded$"},
		},
		{
			name:   "a message of many fields is decoded",
			rule:   "a message has few fields of its own",
			edits:  in("node", "case count > most:", "case count < 0:"),
			killer: killer{pkg: pkg, run: "^TestBounds_MemoryIsInProportion$"},
		},
		{
			name:   "a recorded introduction proves the peer of a connection",
			rule:   "with a secret, the second message proves the peer",
			edits:  in("node", "\tif in.onwards == nil {\n\t\tin.proven()", "\tif in.conn != nil {\n\t\tin.proven()"),
			killer: killer{pkg: pkg, run: "^TestSecret_AReplayedIntroductionDisplacesNobody$"},
		},
		{
			name:   "a renewal by the certificate of another member is used",
			rule:   "a member uses only certificates that are valid for its address",
			edits:  in("node", "if err == nil && k.self != \"\" {", "if err == nil && k.self != \"\" && false {"),
			killer: killer{pkg: pkg, run: "^TestTLS_FilesAreReadAgain$"},
		},
		{
			name:   "a member starts with the certificate of another one",
			rule:   "a certificate names the address of its member",
			edits:  in("node", "process.Check(c.ActorSystem.Address()); err != nil {", "process.Check(c.ActorSystem.Address()); err != nil && false {"),
			killer: killer{pkg: "./lab/noderun", run: "^TestRun_ACertificateMustNameTheAddress$"},
		},
		{
			name:   "messages are logged whole",
			rule:   "logs show types of messages, never their contents",
			edits:  in("node", "a.Key == messageKey {", "a.Key == messageKey && false {"),
			killer: killer{pkg: "./lab/noderun", run: "^TestRun_LogsNoValues$"},
		},
		{
			name:   "a stream on which nothing is sent stays open",
			rule:   "a stream begins in time",
			edits:  in("node", "time.NewTimer(silence)", "time.NewTimer(silence + time.Hour)"),
			killer: killer{pkg: pkg, run: "^TestSilence_IsBounded$"},
		},
		{
			name:   "a connection on which nothing is sent stays open",
			rule:   "a connection begins in time",
			edits:  in("node", "s.conns.add(raw, 2*s.silence)", "s.conns.add(raw, time.Hour)"),
			killer: killer{pkg: pkg, run: "^TestSilence_IsBounded$"},
		},
		{
			name:   "a message from a stranger makes a member step down",
			rule:   "a claim of a stranger needs a second source",
			edits:  in("internal", "case !c.familiar(o.address, o.hello.proof):", "case false:"),
			killer: killer{pkg: membersPkg, run: "^TestStranger_NobodyGivesWayToIt$"},
		},
		{
			name:   "a stranger vouches for itself",
			rule:   "only familiar members name addresses",
			edits:  in("internal", " ||\n\t\t!c.familiar(o.address, o.hello.proof) {", " {"),
			killer: killer{pkg: membersPkg, run: "^TestStranger_NamesNobody$"},
		},
		{
			name:   "the address of a lost member is enough to make a member step down",
			rule:   "a member that was listed shows that it is the process that was",
			edits:  in("internal", "return pledge == \"\" || pledge == pledgeOf(proof)", "return true"),
			killer: killer{pkg: membersPkg, run: "^TestStranger_TheAddressOfALostMemberProvesNothing$"},
		},
		{
			name:   "the pieces of packed lists cost nothing",
			rule:   "decoding takes time in proportion to the size",
			edits:  in("internal", "w.left < 0 {", "false {"),
			killer: killer{pkg: pkg, run: "^TestBounds_PackedListsInPiecesAreNotDecoded$"},
		},
		{
			name:   "strangers hold any memory with unfinished messages",
			rule:   "the bytes of an unfinished message are bounded",
			edits:  in("node", "held > maxHeld", "held < 0"),
			killer: killer{pkg: pkg, run: "^TestHeld_"},
		},
		{
			name:   "strangers hold all permits",
			rule:   "a stranger holds a permit for a quarter of the time",
			edits:  in("internal", "case i < 0 && !c.mayPermit(now, h):\n\t\treturn\n\t", ""),
			killer: killer{pkg: membersPkg, run: "^TestStranger_GetsAPermitNowAndThen$"},
		},
	}
}
