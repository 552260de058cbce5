package main

const (
	leaseDir  = "coordination/internal/core/"
	leaseCore = "./coordination/internal/core"
)

var leaseSim = killer{pkg: leaseCore, run: "TestSimulation_NeverTwoHolders", args: "-whole"}

// leases are bugs of the machine that holds a lease, and of the grant above it.
func leases() []mutant {
	return []mutant{
		{
			name:   "an heir takes over from every owner",
			rule:   "a session inherits what one of its own owner held, and nothing else",
			edits:  in(leaseDir+"machine.go", "r.Owner == m.cfg.Owner && r.Nonce", "r.Owner != \"\" && r.Nonce"),
			killer: killer{pkg: leaseCore, run: "TestSimulation_HeirsAreAlone"},
		},
		{
			name:   "a place in a queue counts for the TTL of its session",
			rule:   "a waiter shows that it lives within its own renewal interval",
			edits:  in("coordination/internal/core/queue.go", "TTL: m.cfg.placeTTL()}", "TTL: m.cfg.TTL}"),
			killer: killer{pkg: "./coordination", run: "/B16_ADeadWaitersTTLHoldsNobodyUp"},
		},
		{
			name:   "the tenure before is the last that was seen",
			rule:   "a grant knows which tenure was the one before",
			edits:  in(leaseDir+"acquire.go", "previous: m.seen.record.Token", "previous: m.high"),
			killer: leaseSim,
		},
		{
			name:   "all grains of a kind share one lease",
			rule:   "each grain works under a lease named by its identity",
			edits:  in("coordination/grain/kind.go", `name := prefix + id.Kind + "/" + id.Identity`, "name := prefix + id.Kind"),
			killer: killer{pkg: "./coordination/grain", run: "^TestConfig_NamesOfLeases$"},
		},
		{
			name:   "a sender that has terminated keeps its lease",
			rule:   "an actor of Props watches those who ask",
			edits:  in("coordination/actor.go", "c.asker.Id == who.Id && gone(ctx, c.asker)", "false && c.asker.Id == who.Id"),
			killer: killer{pkg: "./coordination", run: "^TestProps_DeadAskerHoldsNothing$"},
		},
		{
			name: "holder and contender keep no margin and trust their clocks",
			rule: "validity ends TTL·(1−ρ)−margin after the request, a record is stale TTL·(1+ρ)+margin after it was seen",
			edits: []edit{
				{leaseDir + "config.go", "valid := c.TTL - scale(c.TTL, c.RateError) - c.Margin", "valid := c.TTL"},
				{leaseDir + "config.go", "return ttl + scale(ttl, c.RateError) + c.Margin", "return ttl"},
			},
			killer: leaseSim,
		},
		{
			name:   "holder alone drops the margin",
			rule:   "validity ends TTL·(1−ρ)−margin after the request",
			edits:  in(leaseDir+"config.go", "scale(c.TTL, c.RateError) - c.Margin", "scale(c.TTL, c.RateError)"),
			killer: golden(leaseCore, "acquire_renew_release"),
		},
		{
			name:   "contender alone drops the margin",
			rule:   "a record is stale TTL·(1+ρ)+margin after it was seen",
			edits:  in(leaseDir+"config.go", "scale(ttl, c.RateError) + c.Margin", "scale(ttl, c.RateError)"),
			killer: golden(leaseCore, "stale_holder"),
		},
		{
			name: "validity counts from the answer",
			rule: "validity counts from before the request was sent",
			edits: []edit{
				{leaseDir + "acquire.go", "v, known := m.validityOf(attempt)", "v, known := m.validityOf(attempt)\n\tv.Sent = m.now"},
				{leaseDir + "tenure.go", "v, known := m.ten.validityOf(n, m.cfg)", "v, known := m.ten.validityOf(n, m.cfg)\n\tv.Sent = m.now"},
			},
			killer: leaseSim,
		},
		{
			name:   "validity counts from the newest attempt, whichever is in the record",
			rule:   "validity counts from exactly the attempt that is found in the record",
			edits:  in(leaseDir+"tenure.go", "if a.n == n {", "if a.n == t.count {"),
			killer: saved(leaseCore, "validity_from_the_newest_attempt"),
		},
		{
			name:   "no second look after waiting",
			rule:   "a record is read again before it is taken",
			edits:  in(leaseDir+"machine.go", "if !m.claimOpen() {\n\t\t\tm.load()", "if !m.claimOpen() {\n\t\t\tm.claim()"),
			killer: leaseSim,
		},
		{
			name:   "release blanks whatever record is there",
			rule:   "a release is conditional on the own record",
			edits:  in(leaseDir+"release.go", "m.finish(Done)\n\t\treturn\n\t}", "m.ten.version = m.seen.version\n\t}"),
			killer: leaseSim,
		},
		{
			name:   "a new tenure keeps the token",
			rule:   "tokens grow with every tenure",
			edits:  in(leaseDir+"acquire.go", "token: m.high + 1,", "token: max(1, m.high),"),
			killer: leaseSim,
		},
		{
			name:   "a claim without an answer counts as granted",
			rule:   "an unknown outcome is resolved by reading",
			edits:  in(leaseDir+"acquire.go", "m.phase = doubtful\n\t\tm.failed(m.cfg.Operation, ev.Err)", "m.adopt(op.attempt)"),
			killer: leaseSim,
		},
		{
			name:   "a claim without an answer is forgotten",
			rule:   "a write of unknown outcome is found, made impossible, or outlived",
			edits:  in(leaseDir+"acquire.go", "m.phase = doubtful\n\t\tm.failed(m.cfg.Operation, ev.Err)", "m.lostRace()"),
			killer: saved(leaseCore, "claim_without_answer_forgotten"),
		},
		{
			name:   "an acquire that nobody waits for any more keeps the lease",
			rule:   "a caller that gave up leaves no holder behind",
			edits:  in(leaseDir+"acquire.go", "|| m.closing || len(m.waiters) == 0 {", "|| m.closing {"),
			killer: golden(leaseCore, "gave_up_and_claimed"),
		},
		{
			name:   "a record that vanished frees the lease",
			rule:   "absence is not freedom: the holder may not know yet",
			edits:  in(leaseDir+"machine.go", "next.record, next.ghost = m.seen.record, true", "next.ghost = true"),
			killer: golden(leaseCore, "absence_is_not_freedom"),
		},
		{
			name:   "a contender waits for its own TTL instead of the holder's",
			rule:   "the TTL in the record rules",
			edits:  in(leaseDir+"machine.go", "m.cfg.stale(r.TTL)", "m.cfg.stale(m.cfg.TTL)"),
			killer: leaseSim,
		},
		{
			name:   "the wait begins anew with every look",
			rule:   "takeover within TTL·(1+ρ)+margin of the first sight of the record",
			edits:  in(leaseDir+"machine.go", "if v == m.seen.version {\n\t\treturn", "if v == m.seen.version {\n\t\tm.seen.since = m.now.Mono\n\t\treturn"),
			killer: leaseSim,
		},
		{
			name:   "a holder looks at one clock only",
			rule:   "a holder believes the clock that shows most",
			edits:  in(leaseDir+"clock.go", "return max(r.Mono-since.Mono, r.Boot-since.Boot, r.Wall-since.Wall)", "return r.Mono - since.Mono"),
			killer: saved(leaseCore, "suspended_holder_looks_at_one_clock"),
		},
		{
			name:   "a late renewal revives a tenure that was told lost",
			rule:   "a loss is final",
			edits:  in(leaseDir+"tenure.go", "if m.phase != held || !known ||", "if !known ||"),
			killer: golden(leaseCore, "expired_and_drained"),
		},
		{
			name:   "the answer to an operation given up is taken for that of the present one",
			rule:   "answers belong to one operation",
			edits:  in(leaseDir+"machine.go", "if id != m.op.id || k != m.op.kind {", "if k != m.op.kind {"),
			killer: leaseSim,
		},
		{
			name:   "an expired tenure is released while its work still runs",
			rule:   "nothing is released before the work has ended or has no time left",
			edits:  in(leaseDir+"machine.go", "if m.drained() {", "if true {"),
			killer: golden(leaseCore, "expired_and_drained"),
		},
		{
			name:   "a release that failed is not repeated",
			rule:   "a release goes on until its outcome is known, or the record has expired",
			edits:  in(leaseDir+"release.go", "default:\n\t\tm.failed(m.cfg.Operation, ev.Err)\n\t}\n}", "default:\n\t\tm.finish(Doubt)\n\t}\n}"),
			killer: killer{pkg: "./singleton", run: "^TestScenario_AFailedReleaseIsRepeated$"},
		},
		{
			name:   "a record is believed whatever it says",
			rule:   "a damaged record blocks a lease for a day and not for ever",
			edits:  in(leaseDir+"config.go", "ttl = min(ttl, MaxTTL)", "ttl = max(ttl, 0)"),
			killer: killer{pkg: "./coordination", run: "^TestScenario_AnAbsurdRecordBlocksForADayAtMost$"},
		},
		{
			name:   "a contender looks at the lease's record alone",
			rule:   "a lease held through a session is watched at the session's record",
			edits:  in(leaseDir+"peers.go", "return r.Session != 0 && !r.blank()", "return false && !r.blank()"),
			killer: leaseSim,
		},
		{
			name:   "a session is over when the answer comes late enough",
			rule:   "the read that finds a session unchanged must begin after the wait",
			edits:  in(leaseDir+"peers.go", "case op.sent.Mono >= freeAt:", "case m.now.Mono >= freeAt:"),
			killer: golden(leaseCore, "session_of_another"),
		},
		{
			name:   "a session record that vanished frees what is held through it",
			rule:   "absence is not freedom: who keeps the session may not know yet",
			edits:  in(leaseDir+"peers.go", "case ev.Version == \"\":", "case false:"),
			killer: golden(leaseCore, "session_record_absent"),
		},
		{
			name:   "an observer takes a session for dead when the answer comes late enough",
			rule:   "the read that finds a session unchanged must begin after the wait",
			edits:  in(leaseDir+"observer.go", "op.sent.Mono >= p.freeAt(0, o.cfg)", "o.now+0*op.sent.Mono >= p.freeAt(0, o.cfg)"),
			killer: golden(leaseCore, "observer"),
		},
		{
			name:   "the end of a tenure of a session is taken for the end of the next one",
			rule:   "what is known of a session to be over is its tenures up to one",
			edits:  in(leaseDir+"peers.go", "p.ended = max(p.ended, r.Token)\n", "p.ended = max(p.ended, r.Token+1)\n"),
			killer: golden(leaseCore, "session_given_up"),
		},
		{
			name:   "what has been seen of a session is forgotten with each look",
			rule:   "one observation of a session serves all its leases",
			edits:  in(leaseDir+"peers.go", "if p.seen.known && ev.Version == p.seen.version {", "if false {"),
			killer: killer{pkg: "./coordination", run: "^TestObserve_TheWaitBeginsBeforeTheCrashIsNoticed$"},
		},
		{
			name:   "a lease that is only observed is claimed",
			rule:   "a claim is made for a caller who waits for it",
			edits:  in(leaseDir+"acquire.go", "if len(m.waiters) == 0 {\n\t\tm.await(", "if false {\n\t\tm.await("),
			killer: golden(leaseCore, "observed"),
		},
		{
			name:   "what is said of a lease is believed although more is known",
			rule:   "a claim without a look is made on what the last holder has left",
			edits:  in(leaseDir+"acquire.go", "b.Token < m.high || ", ""),
			killer: golden(leaseCore, "blank"),
		},
		{
			name:   "a claim that has lapsed leaves its token to the next one",
			rule:   "a tenure does not take a write of another one for its own",
			edits:  in(leaseDir+"release.go", "m.high = min(MaxToken, max(m.high, m.ten.token))", ""),
			killer: killer{pkg: leaseCore, run: "^TestForget_NotWhileAWriteMayLand$"},
		},
		{
			name:   "a name is forgotten while a claim of it may land",
			rule:   "a write of unknown outcome is found, made impossible, or outlived",
			edits:  in(leaseDir+"machine.go", "m.observed || m.hazy", "m.observed"),
			killer: killer{pkg: leaseCore, run: "^TestForget_NotWhileAWriteMayLand$"},
		},
		{
			name: "a lease outlives its session",
			rule: "what is held through a session ends with that tenure of the session",
			edits: []edit{
				{leaseDir + "session.go", "case m.phase == held && m.ten.session == ev.Token:", "case m.phase == held:"},
				{leaseDir + "session.go", "if m.phase == held && m.ten.session == ev.Token {\n\t\tm.lose(", "if false {\n\t\tm.lose("},
				{leaseDir + "tenure.go", "m.back.alive && m.back.token == m.ten.session", "true"},
			},
			killer: leaseSim,
		},
		{
			name:   "a claim is made although the session has ended",
			rule:   "a lease is claimed through a live session only",
			edits:  in(leaseDir+"session.go", "return m.back.alive && m.back.validity.MayStart(m.now)", "return true"),
			killer: golden(leaseCore, "session_held_through"),
		},
		{
			name:   "a claim is repeated under another tenure of the session",
			rule:   "a record names the tenure of the session that its holder lives by",
			edits:  in(leaseDir+"acquire.go", "m.backed() && m.back.token == m.ten.session:", "m.backed():"),
			killer: golden(leaseCore, "session_changed_while_claiming"),
		},
		{
			name:   "an unwanted claim through a session is left to expire",
			rule:   "what a living session keeps alive is undone until that is certain",
			edits:  in(leaseDir+"machine.go", "return m.back.gone >= m.ten.session", "return m.now.Mono >= m.ten.lapse(m.cfg)"),
			killer: golden(leaseCore, "session_release_repeated"),
		},
		{
			name:   "a deleted record of a lease is waited for as long as its holder's session lives",
			rule:   "a holder that reaches the store has learnt of the deletion within five TTLs",
			edits:  in(leaseDir+"peers.go", "r.Nonce != m.cfg.Nonce && !m.seen.ghost", "r.Nonce != m.cfg.Nonce"),
			killer: golden(leaseCore, "session_lease_deleted"),
		},
		{
			name:   "the token that the store gave is not taken in",
			rule:   "a tenure has the token that its record has",
			edits:  in(leaseDir+"acquire.go", "m.ten.token = max(m.ten.token, ev.Token)\n\t\t", ""),
			killer: leaseSim,
		},
		{
			name:   "a claim without an answer is looked for under the token asked for",
			rule:   "a claim is found whatever token the store gave it",
			edits:  in(leaseDir+"tenure.go", "t.asked && r.Token > t.token", "t.asked && r.Token > MaxToken"),
			killer: golden(leaseCore, "token_given"),
		},
		{
			name:   "who had no session when it looked claims without a place in the queue",
			rule:   "with Config.Fair nobody is overtaken who waits, lives and is connected",
			edits:  in(leaseDir+"acquire.go", "if m.orderly() && m.queue.beat == 0 {", "if false {"),
			killer: killer{pkg: leaseCore, run: "TestSimulation_NobodyIsOvertakenInAQueue", args: "-whole"},
		},
		{
			name:   "who waits in a queue claims out of turn",
			rule:   "with Config.Fair nobody is overtaken who waits, lives and is connected",
			edits:  in(leaseDir+"acquire.go", "turn := m.turn(); m.now.Mono < turn {", "turn := m.turn(); m.now.Mono+forever < turn {"),
			killer: killer{pkg: leaseCore, run: "TestSimulation_NobodyIsOvertakenInAQueue", args: "-whole"},
		},
		{
			name:   "the dead keep their places in a queue",
			rule:   "a waiter that dies loses its place within a TTL",
			edits:  in(leaseDir+"queue.go", "q.ahead[i] = before[known]", "q.ahead[i] = sighting{p, now}"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/B16_ADeadWaiterIsPassedOver"},
		},
		{
			name:   "who gives up keeps the place in the queue",
			rule:   "who does not wait any more holds nobody up",
			edits:  in(leaseDir+"queue.go", "return m.queue.beat != 0 && !m.patient()", "if !m.patient() {\n\t\tm.queue = queue{}\n\t}\n\treturn false"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/B16_WhoGivesUpHoldsNobodyUp"},
		},
		{
			name:   "a lock on a removed file counts as held",
			rule:   "a lock file that was replaced while it was waited for excludes nobody",
			edits:  in("coordination/file/lock.go", "if s.replaced(f, name) {", "if false {"),
			killer: killer{pkg: "./coordination/file", run: "TestStore_RemovedLockIsNotHeld"},
		},
		{
			name:   "a session record is written in the format of those who know no sessions",
			rule:   "a program that knows no sessions must not take a record that names one for its own kind",
			edits:  in("coordination/internal/record/record.go", "if r.Session != 0 || r.Forever {", "if r.Forever {"),
			killer: killer{pkg: "./coordination/internal/record", run: "TestDecode_RefusesWhatEncodeDoesNotWrite"},
		},
		{
			name:   "a provider forgets with which options a lease is in use",
			rule:   "one name, location and owner is one lease with one configuration",
			edits:  in("coordination/provider.go", "known && first != key.config", "known && first != key.config && false"),
			killer: killer{pkg: "./coordination", run: "TestProvider_TheLastDropEndsTheSession"},
		},
		{
			name:   "Check waits for a timer to notice the end",
			rule:   "Check compares the clock and is right at once after a pause",
			edits:  in("coordination/grant.go", "!g.validity.Load().MayStart(g.lease.s.now())", "g.ctx.Err() != nil"),
			killer: killer{pkg: "./coordination", run: "TestGrant_CheckAsksNoTimer"},
		},
		{
			name:   "an error of the store counts as not written",
			rule:   "any other error than a conflict or a refusal may have been written",
			edits:  in("coordination/store.go", "return core.Unknown", "return core.Refused"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/E7_"},
		},
		{
			name:   "Close waits for a record that cannot be released",
			rule:   "Close ends Drain and six calls of the store after it began",
			edits:  in("coordination/session.go", "if l.overdue(closeOperations) {", "if false {"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/A12_"},
		},
		{
			name:   "Close keeps the session record while a lease is left",
			rule:   "a closed session does not count as a holder",
			edits:  in("coordination/sessionrecord.go", "(l.quiet() || l.overdue(releaseOperations))", "l.quiet()"),
			killer: killer{pkg: "./coordination/file", run: "TestConformance/Shared/A12_"},
		},
		{
			name:   "a session grants a name that is not UTF-8",
			rule:   "a name is UTF-8 of at most MaxName bytes",
			edits:  in("coordination/name.go", "case !utf8.ValidString(name):", "case false:"),
			killer: killer{pkg: "./coordination/file", run: "TestConformance/A2_"},
		},
		{
			name:   "a restarted gate releases while its worker runs",
			rule:   "a lease is released when the work under it has ended",
			edits:  in("coordination/gate.go", "if g.worker == nil { //", "if true { //"),
			killer: killer{pkg: "./coordination", run: "TestGated_RestartDoesNotReleaseBeforeTheWorkerStopped"},
		},
		{
			name:   "the end of a life releases while its actors work",
			rule:   "work has Config.Drain to end",
			edits:  in("coordination/background.go", "AfterFunc(b.lease.s.cfg.Drain, b.cancel)", "AfterFunc(0, b.cancel)"),
			killer: killer{pkg: "./coordination", run: "TestAcquireTo_EndsWithTheLifeOfItsSystem"},
		},
	}
}
