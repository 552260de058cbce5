package main

// strangers are bugs of what keeps them out: the guard, and what members believe of a hello.
func strangers() []mutant {
	const dir, pkg = "node/internal/guard/", "./node/internal/guard"
	const members, membersPkg = "internal/membership/", "./internal/membership"
	return []mutant{
		{
			name:   "a termination of another's actor is believed",
			rule:   "a peer terminates and watches only its own actors",
			edits:  in(dir+"check.go", "if pid.GetAddress() == c.peer {", "if pid.GetAddress() != \"\" {"),
			killer: killer{pkg: pkg, run: "^TestForged_NobodySpeaksForAnotherMember$"},
		},
		{
			name:   "any peer speaks for any member",
			rule:   "a message of this module is in the name of its peer",
			edits:  in(dir+"check.go", "if at != \"\" && at != c.peer {", "if at != \"\" && at != c.peer && false {"),
			killer: killer{pkg: pkg, run: "^TestForged_"},
		},
		{
			name:   "a hello may introduce any address",
			rule:   "a hello is about the address of its peer",
			edits:  in(dir+"check.go", "helloAddress(payload) != c.peer {", "helloAddress(payload) != c.peer && false {"),
			killer: killer{pkg: pkg, run: "^TestForged_"},
		},
		{
			name:   "what is for others is passed on",
			rule:   "a member is no relay",
			edits:  in(dir+"check.go", "case address != c.self && address != local:", "case address == \"\":"),
			killer: killer{pkg: pkg, run: "^TestRelay_"},
		},
		{
			name:   "a member vouches for streams to others",
			rule:   "the proof of a stream names both of its ends",
			edits:  in(dir+"vouch.go", "return o.to[n] == to && to != \"\"", "return o.to[n] != \"\""),
			killer: killer{pkg: pkg, run: "^TestVouch_TheStreamIsOne$"},
		},
		{
			name:   "seals do not count",
			rule:   "a message cannot be repeated or left out",
			edits:  in(dir+"secret.go", "\t\treturn errSeal\n\t}\n\ts.next++\n", "\t\treturn errSeal\n\t}\n\ts.next = 0\n"),
			killer: killer{pkg: pkg, run: "^TestS(ecret|eal)_"},
		},
		{
			name:   "the certificate of a member speaks for its whole host",
			rule:   "a URI in a certificate narrows it to an address",
			edits:  in(dir+"files.go", "err == nil && !exact &&", "err == nil && (!exact || true) &&"),
			killer: killer{pkg: pkg, run: "^TestTLS_ACertificateSpeaksForItsMemberOnly$"},
		},
		{
			name:   "any certificate will do",
			rule:   "a client shows a certificate of an authority",
			edits:  in(dir+"credentials.go", "tls.RequireAndVerifyClientCert", "tls.RequireAnyClientCert"),
			killer: killer{pkg: pkg, run: "^TestTLS_StrangersAreNotHeard$"},
		},
		{
			name:   "whatever is sent is decoded",
			rule:   "a message is bounded before it is decoded",
			edits:  in(dir+"scan.go", "if s.envelopes > limit {", "if s.envelopes < 0 {"),
			killer: killer{pkg: pkg, run: "^TestBounds_MemoryIsInProportion$"},
		},
		{
			name:   "a message of tiny elements is decoded",
			rule:   "a message takes at most 16 times its size",
			edits:  in(dir+"cost.go", "if w.left -= n; w.left < 0 {", "if w.left -= n; w.left < -1<<40 {"),
			killer: killer{pkg: pkg, run: "^TestBounds_AMessageOfTinyElementsIsNotDecoded$"},
		},
		{
			name:   "a stranger's word makes a member give way",
			rule:   "what a stranger says of us has no second source",
			edits:  in(members+"core_permit.go", "case !c.familiar(o.address):", "case false:"),
			killer: killer{pkg: membersPkg, run: "^TestStranger_NobodyGivesWayToIt$"},
		},
		{
			name:   "a stranger vouches for itself",
			rule:   "only familiar members name addresses",
			edits:  in(members+"core_lost.go", " || !c.familiar(o.address) {", " {"),
			killer: killer{pkg: membersPkg, run: "^TestStranger_NamesNobody$"},
		},
		{
			name:   "strangers hold all permits",
			rule:   "a stranger gets a permit for a quarter of the time",
			edits:  in(members+"core_permit.go", "case i < 0 && !c.mayPermit(now, h.address):\n\t\treturn\n\t", ""),
			killer: killer{pkg: membersPkg, run: "^TestStranger_GetsAPermitNowAndThen$"},
		},
	}
}
