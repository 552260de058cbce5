package main

const (
	leaseDir  = "coordination/internal/core/"
	leaseCore = "./coordination/internal/core"
)

var leaseSim = killer{pkg: leaseCore, run: "TestSimulation_NeverTwoHolders", args: "-whole"}

// leases are bugs of the state machine that holds a lease, and of the grant above it.
func leases() []mutant {
	return []mutant{
		{
			name:   "a grant is confirmed without a look at its token",
			rule:   "CheckRemote returns nil only if the record names this tenure",
			edits:  in("coordination/holder.go", "case h.Session != g.lease.s.nonce || h.Token != g.token:", "case h.Session != g.lease.s.nonce && h.Token > g.token:"),
			killer: killer{pkg: "./coordination", run: "TestCheckRemote_ReadsTheRecord"},
		},
		{
			name:   "the renewal of a session record shares a call with other swaps",
			rule:   "a renewal waits for no other call of the store",
			edits:  in("coordination/batch.go", "s.batch == nil || strings.HasPrefix(w.Name, leasestore.SessionRecords)", "s.batch == nil || strings.HasPrefix(w.Name, \"?\")"),
			killer: killer{pkg: "./coordination", run: "TestBatch_ARenewalWaitsForNoSwap"},
		},
		{
			name:   "the outcomes of a batch go to other swaps",
			rule:   "each swap of a batch has its own outcome",
			edits:  in("coordination/batch.go", "p.done <- got[i]", "p.done <- got[len(all)-1-i]"),
			killer: killer{pkg: "./coordination", run: "TestBatch_AConflictIsOfItsOwnLease"},
		},
		{
			name: "a swap that has waited too long is made later",
			rule: "a swap that was withdrawn is not made",
			edits: []edit{
				{"coordination/batch.go", "len(next) < leasestore.MaxBatch && p.ctx.Err() == nil", "len(next) < leasestore.MaxBatch"},
				{"coordination/batch.go", "slices.Delete(b.mu.waiting, i, i+1)", "b.mu.waiting[:len(b.mu.waiting):len(b.mu.waiting)]"},
				{"coordination/batch.go", "b.store.SwapAll(all[0].ctx, swaps)", "b.store.SwapAll(context.Background(), swaps)"},
			},
			killer: killer{pkg: "./coordination", run: "TestBatch_ASwapThatWaitsTooLongIsNotMade"},
		},
		{
			name: "a batch with a wrong number of outcomes counts as made",
			rule: "after a call that broke off, each outcome is unknown",
			edits: []edit{
				{"coordination/batch.go", "if len(got) == len(all) {", "if i < len(got) {"},
				{"coordination/batch.go", "p.done <- leasestore.Swapped{Err: err}", "_ = err"},
			},
			killer: killer{pkg: "./coordination", run: "TestBatch_AStoreThatBreaksItsContract"},
		},
		{
			name:   "a message is sent in an envelope although its lease was lost",
			rule:   "no new work starts under a lost lease",
			edits:  in("coordination/fence/message.go", "if err := t.Check(); err != nil {", "if err := t.Check(); false {"),
			killer: killer{pkg: "./coordination/fence", run: "TestEnvelope_UnderALostLeaseThereIsNone"},
		},
		{
			name:   "a pause is measured after the alarm was set again",
			rule:   "a session counts how often it woke late",
			edits:  in("coordination/session.go", "s.overrun(alarm.late())\n\t\t\talarm.off()", "alarm.off()\n\t\t\ts.overrun(alarm.late())"),
			killer: killer{pkg: "./coordination", run: "TestStatus_CountsStalls"},
		},
		{
			name:   "an heir takes over from every owner",
			rule:   "a session inherits only leases that a session of its own owner held",
			edits:  in(leaseDir+"machine.go", "r.Owner == m.cfg.Owner && r.Nonce", "r.Owner != \"\" && r.Nonce"),
			killer: killer{pkg: leaseCore, run: "TestSimulation_HeirsAreAlone"},
		},
		{
			name:   "a place in a queue lasts for the TTL of the session",
			rule:   "a waiter proves that it is alive within its own renewal interval",
			edits:  in("coordination/internal/core/queue.go", "TTL: m.cfg.placeTTL()}", "TTL: m.cfg.TTL}"),
			killer: killer{pkg: "./coordination", run: "/B16_ADeadWaitersTTLHoldsNobodyUp"},
		},
		{
			name:   "a place in a queue counts for the margin of a lease longer",
			rule:   "a waiter proves that it is alive within its own renewal interval",
			edits:  in("coordination/internal/core/config.go", "min(c.Margin, c.beat())", "c.Margin"),
			killer: killer{pkg: "./coordination", run: "/B16_ADeadWaitersTTLHoldsNobodyUp"},
		},
		{
			name:   "the timeout of a store call does not follow the TTL",
			rule:   "the default of each time follows TTL",
			edits:  in("coordination/config.go", "min(3*time.Second, c.TTL/10)", "3*time.Second"),
			killer: killer{pkg: "./coordination", run: "TestConfig_DefaultsAreValid"},
		},
		{
			name:   "a reader of holders is not told that the store is back",
			rule:   "after an outage the holder is reported again",
			edits:  in("coordination/holders.go", "last == nil || failing ||", "last == nil ||"),
			killer: killer{pkg: "./coordination", run: "TestHolders_AreToldAgainAfterAnOutage"},
		},
		{
			name:   "a store of Azure without a key asks for no token",
			rule:   "the SDK's default credential is used where no other is set",
			edits:  in("coordination/azureblob/opener.go", "case s.identity():\n\t\tcredential", "case false:\n\t\tcredential"),
			killer: killer{pkg: "./coordination/azureblob", run: "TestOpener_UsesTheIdentityOfTheMachine"},
		},
		{
			name:   "a grant reports the largest token seen as the previous tenure",
			rule:   "a grant reports the tenure directly before its own",
			edits:  in(leaseDir+"acquire.go", "previous: m.seen.record.Token", "previous: m.high"),
			killer: leaseSim,
		},
		{
			name:   "all grains of a kind share one lease",
			rule:   "each grain works under a lease named by its identity",
			edits:  in("coordination/grain/kind.go", `name := prefix + id.GetKind() + "/" + id.GetIdentity()`, "name := prefix + id.GetKind()"),
			killer: killer{pkg: "./coordination/grain", run: "^TestConfig_NamesOfLeases$"},
		},
		{
			name:   "the lease of a terminated sender is kept",
			rule:   "an actor of Props watches the actors that send requests to it",
			edits:  in("coordination/actor.go", "c.asker.Id == who.Id && gone(ctx, c.asker)", "false && c.asker.Id == who.Id"),
			killer: killer{pkg: "./coordination", run: "^TestProps_DeadAskerHoldsNothing$"},
		},
		{
			name: "holder and contender apply no margin and trust their clocks",
			rule: "validity ends TTL·(1−ρ)−margin after the request; a record is stale TTL·(1+ρ)+margin after it was seen",
			edits: []edit{
				{leaseDir + "config.go", "valid := c.TTL - scale(c.TTL, c.RateError) - c.Margin", "valid := c.TTL"},
				{leaseDir + "config.go", "return ttl + scale(ttl, c.RateError) + c.Margin", "return ttl"},
			},
			killer: leaseSim,
		},
		{
			name:   "only the holder omits the margin",
			rule:   "validity ends TTL·(1−ρ)−margin after the request",
			edits:  in(leaseDir+"config.go", "scale(c.TTL, c.RateError) - c.Margin", "scale(c.TTL, c.RateError)"),
			killer: golden(leaseCore, "acquire_renew_release"),
		},
		{
			name:   "only the contender omits the margin",
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
			name:   "validity counts from the newest attempt, not from the one in the record",
			rule:   "validity counts from the attempt that the record contains",
			edits:  in(leaseDir+"tenure.go", "if a.n == n {", "if a.n == t.count {"),
			killer: saved(leaseCore, "validity_from_the_newest_attempt"),
		},
		{
			name:   "a contender does not read again after waiting",
			rule:   "a contender reads the record again before it claims",
			edits:  in(leaseDir+"machine.go", "if !m.claimOpen() {\n\t\t\tm.load()", "if !m.claimOpen() {\n\t\t\tm.claim()"),
			killer: leaseSim,
		},
		{
			name:   "a release blanks any record",
			rule:   "a release is conditional on the holder's own record",
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
			rule:   "a write of unknown outcome is found, prevented, or outlived",
			edits:  in(leaseDir+"acquire.go", "m.phase = doubtful\n\t\tm.failed(m.cfg.Operation, ev.Err)", "m.lostRace()"),
			killer: saved(leaseCore, "claim_without_answer_forgotten"),
		},
		{
			name:   "an acquire without a waiting caller keeps the lease",
			rule:   "a caller that gave up leaves no holder behind",
			edits:  in(leaseDir+"acquire.go", "|| m.closing || len(m.waiters) == 0 {", "|| m.closing {"),
			killer: golden(leaseCore, "gave_up_and_claimed"),
		},
		{
			name:   "a deleted record frees the lease",
			rule:   "a missing record does not free the lease: the holder may not know of the deletion yet",
			edits:  in(leaseDir+"machine.go", "next.record, next.vanished = m.seen.record, true", "next.vanished = true"),
			killer: golden(leaseCore, "absence_is_not_freedom"),
		},
		{
			name:   "a contender waits for its own TTL instead of the holder's",
			rule:   "the TTL in the record counts",
			edits:  in(leaseDir+"machine.go", "m.cfg.stale(r.TTL)", "m.cfg.stale(m.cfg.TTL)"),
			killer: leaseSim,
		},
		{
			name:   "every read restarts the wait",
			rule:   "a takeover happens within TTL·(1+ρ)+margin of the first read of the record",
			edits:  in(leaseDir+"machine.go", "if v == m.seen.version {\n\t\treturn", "if v == m.seen.version {\n\t\tm.seen.since = m.now.Mono\n\t\treturn"),
			killer: leaseSim,
		},
		{
			name:   "a holder reads only one clock",
			rule:   "a holder uses the clock that shows the most elapsed time",
			edits:  in(leaseDir+"clock.go", "return max(r.Mono-since.Mono, r.Boot-since.Boot, r.Wall-since.Wall)", "return r.Mono - since.Mono"),
			killer: saved(leaseCore, "suspended_holder_looks_at_one_clock"),
		},
		{
			name:   "a late renewal revives a tenure that was reported lost",
			rule:   "a loss is final",
			edits:  in(leaseDir+"tenure.go", "if m.phase != held || !known ||", "if !known ||"),
			killer: golden(leaseCore, "expired_and_drained"),
		},
		{
			name:   "the answer to an abandoned operation counts for the current one",
			rule:   "an answer belongs to one operation",
			edits:  in(leaseDir+"machine.go", "if id != m.op.id || k != m.op.kind {", "if k != m.op.kind {"),
			killer: leaseSim,
		},
		{
			name:   "an expired tenure is released while its work still runs",
			rule:   "a lease is released only when its work has ended or has no time left",
			edits:  in(leaseDir+"machine.go", "if m.drained() {", "if true {"),
			killer: golden(leaseCore, "expired_and_drained"),
		},
		{
			name:   "a predecessor reads its lease every three times to live only",
			rule:   "a predecessor learns of a takeover within its TTL",
			edits:  in("coordination/internal/core/tenure.go", "m.cfg.auditTenure()", "m.cfg.audit()"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/Shared/B15_APredecessor"},
		},
		{
			name:   "a failed release is not repeated",
			rule:   "a release is repeated until its outcome is known or the record has expired",
			edits:  in(leaseDir+"release.go", "default:\n\t\tm.failed(m.cfg.Operation, ev.Err)\n\t}\n}", "default:\n\t\tm.finish(Doubt)\n\t}\n}"),
			killer: killer{pkg: "./singleton", run: "^TestScenario_AFailedReleaseIsRepeated$"},
		},
		{
			name:   "the contents of a record are trusted without a bound",
			rule:   "a damaged record blocks a lease for at most a day",
			edits:  in(leaseDir+"config.go", "ttl = min(ttl, MaxTTL)", "ttl = max(ttl, 0)"),
			killer: killer{pkg: "./coordination", run: "^TestScenario_AnAbsurdRecordBlocksForADayAtMost$"},
		},
		{
			name:   "a contender watches only the record of the lease",
			rule:   "a contender watches the session's record of a lease that is held through a session",
			edits:  in(leaseDir+"peers.go", "return r.Session != 0 && !r.blank()", "return false && !r.blank()"),
			killer: leaseSim,
		},
		{
			name:   "a blank session record ends every tenure up to its token",
			rule:   "a blank record may show a larger token than any tenure has had",
			edits:  in(leaseDir+"peers.go", "p.ended = max(p.ended, known)", "p.ended = max(p.ended, r.Token)"),
			killer: leaseSim,
		},
		{
			name:   "a session counts as over if the answer arrives late enough",
			rule:   "the read that finds a session unchanged must begin after the wait",
			edits:  in(leaseDir+"peers.go", "case op.sent.Mono >= freeAt:", "case m.now.Mono >= freeAt:"),
			killer: golden(leaseCore, "session_of_another"),
		},
		{
			name:   "a missing session record frees the leases of the session",
			rule:   "a missing session record frees nothing: the session's owner may not know of the deletion yet",
			edits:  in(leaseDir+"peers.go", "case ev.Version == \"\":", "case false:"),
			killer: golden(leaseCore, "session_record_absent"),
		},
		{
			name:   "an observer considers a session dead if the answer arrives late enough",
			rule:   "the read that finds a session unchanged must begin after the wait",
			edits:  in(leaseDir+"observer.go", "op.sent.Mono >= p.freeAt(o.cfg)", "o.now+0*op.sent.Mono >= p.freeAt(o.cfg)"),
			killer: golden(leaseCore, "observer"),
		},
		{
			name:   "the end of one tenure of a session ends the next one",
			rule:   "the end of a tenure of a session ends that tenure and earlier ones only",
			edits:  in(leaseDir+"peers.go", "p.ended = max(p.ended, r.Token)\n", "p.ended = max(p.ended, r.Token+1)\n"),
			killer: golden(leaseCore, "session_given_up"),
		},
		{
			name:   "each read forgets earlier observations of a session",
			rule:   "one observation of a session serves all its leases",
			edits:  in(leaseDir+"peers.go", "if !p.seen.known || ev.Version != p.seen.version {", "if true {"),
			killer: killer{pkg: "./coordination", run: "^TestObserve_TheWaitBeginsBeforeTheCrashIsNoticed$"},
		},
		{
			name:   "a lease that is only observed is claimed",
			rule:   "a claim is made only for a waiting caller",
			edits:  in(leaseDir+"acquire.go", "if len(m.waiters) == 0 {\n\t\tm.await(", "if false {\n\t\tm.await("),
			killer: golden(leaseCore, "observed"),
		},
		{
			name:   "a claim trusts a notice about the lease although more is known",
			rule:   "a claim without a read relies only on the notice of the last holder",
			edits:  in(leaseDir+"acquire.go", "b.Token < m.high || ", ""),
			killer: golden(leaseCore, "blank"),
		},
		{
			name:   "a lapsed claim leaves its token to the next claim",
			rule:   "a tenure never adopts the write of another tenure",
			edits:  in(leaseDir+"release.go", "m.high = min(MaxToken, max(m.high, m.ten.token))", ""),
			killer: killer{pkg: leaseCore, run: "^TestForget_NotWhileAWriteMayLand$"},
		},
		{
			name:   "a name is forgotten while a claim for it may still land",
			rule:   "a write of unknown outcome is found, prevented, or outlived",
			edits:  in(leaseDir+"machine.go", "m.observed || m.unsettled", "m.observed"),
			killer: killer{pkg: leaseCore, run: "^TestForget_NotWhileAWriteMayLand$"},
		},
		{
			name: "a lease outlives its session",
			rule: "a lease held through a session ends with that tenure of the session",
			edits: []edit{
				{leaseDir + "session.go", "case m.phase == held && m.ten.session == ev.Token:", "case m.phase == held:"},
				{leaseDir + "session.go", "if m.phase == held && m.ten.session == ev.Token {\n\t\tm.lose(", "if false {\n\t\tm.lose("},
				{leaseDir + "tenure.go", "m.back.alive && m.back.token == m.ten.session", "true"},
			},
			killer: leaseSim,
		},
		{
			name:   "a claim is made although the session has ended",
			rule:   "a lease is claimed only through a live session",
			edits:  in(leaseDir+"session.go", "return m.back.alive && m.back.validity.MayStart(m.now)", "return true"),
			killer: golden(leaseCore, "session_held_through"),
		},
		{
			name:   "a claim is repeated under another tenure of the session",
			rule:   "a record names the tenure of the session through which it is held",
			edits:  in(leaseDir+"acquire.go", "m.backed() && m.back.token == m.ten.session:", "m.backed():"),
			killer: golden(leaseCore, "session_changed_while_claiming"),
		},
		{
			name:   "an unwanted claim through a session is left to expire",
			rule:   "the release of a claim that a live session would keep valid is repeated until it is certain",
			edits:  in(leaseDir+"machine.go", "return m.back.gone >= m.ten.session", "return m.now.Mono >= m.ten.lapse(m.cfg)"),
			killer: golden(leaseCore, "session_release_repeated"),
		},
		{
			name:   "a contender waits for a deleted lease record as long as the holder's session lives",
			rule:   "a holder that reaches the store learns of the deletion within five TTLs",
			edits:  in(leaseDir+"peers.go", "r.Nonce != m.cfg.Nonce && !m.seen.vanished", "r.Nonce != m.cfg.Nonce"),
			killer: golden(leaseCore, "session_lease_deleted"),
		},
		{
			name:   "a holder ignores the token that the store assigned",
			rule:   "a tenure has the token of its record",
			edits:  in(leaseDir+"acquire.go", "m.ten.token = max(m.ten.token, ev.Token)\n\t\t", ""),
			killer: leaseSim,
		},
		{
			name:   "a claim without an answer is searched only under the requested token",
			rule:   "a claim is found under any token that the store assigned",
			edits:  in(leaseDir+"tenure.go", "t.asked && r.Token > t.token", "t.asked && r.Token > MaxToken"),
			killer: golden(leaseCore, "token_given"),
		},
		{
			name:   "a contender without a session at its first read claims without a place in the queue",
			rule:   "with Config.Fair, no contender overtakes a live and connected waiter",
			edits:  in(leaseDir+"acquire.go", "if m.orderly() && m.queue.beat == 0 {", "if false {"),
			killer: killer{pkg: leaseCore, run: "TestSimulation_NobodyIsOvertakenInAQueue", args: "-whole"},
		},
		{
			name:   "a waiter in a queue claims out of turn",
			rule:   "with Config.Fair, no contender overtakes a live and connected waiter",
			edits:  in(leaseDir+"acquire.go", "turn := m.turn(); m.now.Mono < turn {", "turn := m.turn(); m.now.Mono+forever < turn {"),
			killer: killer{pkg: leaseCore, run: "TestSimulation_NobodyIsOvertakenInAQueue", args: "-whole"},
		},
		{
			name:   "dead waiters keep their places in a queue",
			rule:   "a waiter that dies loses its place within a TTL",
			edits:  in(leaseDir+"queue.go", "q.ahead[i] = before[known]", "q.ahead[i] = sighting{p, now}"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/B16_ADeadWaiterIsPassedOver"},
		},
		{
			name:   "a waiter that gives up keeps its place in the queue",
			rule:   "a waiter that has given up delays no other",
			edits:  in(leaseDir+"queue.go", "return m.queue.beat != 0 && !m.patient()", "if !m.patient() {\n\t\tm.queue = queue{}\n\t}\n\treturn false"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/B16_WhoGivesUpHoldsNobodyUp"},
		},
		{
			name:   "a lock on a removed file counts as held",
			rule:   "a lock on a file that was replaced during the wait excludes nobody",
			edits:  in("coordination/file/lock.go", "if s.replaced(f, name) {", "if false {"),
			killer: killer{pkg: "./coordination/file", run: "TestStore_RemovedLockIsNotHeld"},
		},
		{
			name:   "a session record is written in the format without sessions",
			rule:   "a program that does not support sessions must not read a record with a session as its own format",
			edits:  in("coordination/internal/record/record.go", "if r.Session != 0 || r.Forever {", "if r.Forever {"),
			killer: killer{pkg: "./coordination/internal/record", run: "TestDecode_RefusesWhatEncodeDoesNotWrite"},
		},
		{
			name:   "a provider forgets the options of a lease in use",
			rule:   "one name, location and owner is one lease with one configuration",
			edits:  in("coordination/leaseconfig/provider.go", "known && first != key.config", "known && first != key.config && false"),
			killer: killer{pkg: "./coordination/leaseconfig", run: "TestProvider_TheLastDropEndsTheSession"},
		},
		{
			name:   "Check waits for a timer to detect the end",
			rule:   "Check compares the clock and is correct immediately after a pause",
			edits:  in("coordination/grant.go", "!g.validity.Load().MayStart(g.lease.s.now())", "g.ctx.Err() != nil"),
			killer: killer{pkg: "./coordination", run: "TestGrant_CheckAsksNoTimer"},
		},
		{
			name:   "an error of the store counts as not written",
			rule:   "after any error other than a conflict or a refusal, the write may have happened",
			edits:  in("coordination/store.go", "return core.Unknown", "return core.Refused"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/E7_"},
		},
		{
			name:   "Close waits for a record that cannot be released",
			rule:   "Close ends within Drain and six store calls",
			edits:  in("coordination/closing.go", "closeOperations = 2 * releaseOperations", "closeOperations = 200 * releaseOperations"),
			killer: killer{pkg: "./coordination", run: "TestConformance_Memory/A12_"},
		},
		{
			name: "Close keeps the session record while a lease remains",
			rule: "a closed session does not count as a holder",
			edits: []edit{
				{"coordination/sessionrecord.go", "(l.quiet() || l.overdue(releaseOperations))", "l.quiet()"},
				{"coordination/closing.go", "case l.keeper == nil || l.closing.keeper:", "default:"},
				{"coordination/closing.go", "\t}\n\treturn l.untilPatienceFor(releaseOperations)", "\t}"},
			},
			killer: killer{pkg: "./coordination/file", run: "TestConformance/Shared/A12_"},
		},
		{
			name:   "a session grants a name that is not UTF-8",
			rule:   "a name is UTF-8 of at most MaxName bytes",
			edits:  in("coordination/name.go", "case !utf8.ValidString(name):", "case false:"),
			killer: killer{pkg: "./coordination/file", run: "TestConformance/A2_"},
		},
		{
			name:   "a restarted gate releases the lease while its worker runs",
			rule:   "a lease is released when the work under it has ended",
			edits:  in("coordination/gate.go", "if g.worker == nil { //", "if true { //"),
			killer: killer{pkg: "./coordination", run: "TestGated_RestartDoesNotReleaseBeforeTheWorkerStopped"},
		},
		{
			name:   "the end of a life releases leases while its actors work",
			rule:   "work has Config.Drain to end",
			edits:  in("coordination/background.go", "AfterFunc(b.lease.s.cfg.Drain, b.cancel)", "AfterFunc(0, b.cancel)"),
			killer: killer{pkg: "./coordination", run: "TestAcquireTo_EndsWithTheLifeOfItsSystem"},
		},
	}
}
