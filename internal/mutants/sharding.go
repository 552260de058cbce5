package main

const (
	shardDir  = "sharding/internal/core/"
	laneDir   = "sharding/internal/lane/"
	shardCore = "./sharding/internal/core"
)

var (
	plannedMoves = killer{pkg: shardCore, run: "^TestSimulation_PlannedMovesLoseNothing$", args: "-whole"}
	remembers    = killer{pkg: shardCore, run: "^TestSimulation_Remembers$", args: "-whole"}
	delivers     = killer{pkg: shardCore, run: "^TestSimulation_Delivers$", args: "-whole"}
	shardChaos   = killer{pkg: shardCore, run: "^TestSimulation_NeverTwoAlive$", args: "-whole"}
)

// shards are bugs of regions and of the coordinator that assigns shards to them. The rules in
// brackets are those of the comment of package core.
func shards() []mutant {
	return []mutant{
		{
			name:   "entities start when the shard is assigned, before the lease is held",
			rule:   "entities run only under a tenure that is held [S1]",
			edits:  in(shardDir+"shard.go", "\ts.blank = Blank{}\n}\n\n// onHeld", "\ts.blank = Blank{}\n\ts.token++\n\ts.activate()\n}\n\n// onHeld"),
			killer: plannedMoves,
		},
		{
			name:   "middleware that panics while a grain stops keeps its shard",
			rule:   "an incarnation ends whatever the application does while it stops",
			edits:  in("sharding/mailbox.go", "if m.stopped && m.broke(message) {", "if false && m.broke(message) {"),
			killer: killer{pkg: "./sharding/grains", run: "^TestGrain_MiddlewareThatPanicsKeepsNoShard$"},
		},
		{
			name:   "grains are looked up beside another lookup",
			rule:   "while a member finds the same kinds by another lookup, no grain is looked up",
			edits:  in("sharding/grains/rivals.go", "if len(r.found) == 0 {", "if true {"),
			killer: killer{pkg: "./sharding/grains", run: "^TestLookup_RefusesToShareKindsWithAnother$"},
		},
		{
			name: "a message in a mailbox is not checked against the tenure",
			rule: "each message is checked against the tenure before it is handled [S2]",
			edits: []edit{
				{"sharding/mailbox.go", "batch.len() > 0 && m.cell.tenure.Check() == nil {", "batch.len() > 0 {"},
				{"sharding/mailbox.go", "case m.cell.tenure.Check() == nil:\n\t\t\tp, ok", "case true:\n\t\t\tp, ok"},
			},
			killer: killer{pkg: "./sharding", run: "^TestMailbox_HandlesNothingWhenTheTenureIsOver$"},
		},
		{
			name:   "on a loss, entities are asked to stop",
			rule:   "on a loss, entities are killed before validity ends [S2b]",
			edits:  in(shardDir+"shard.go", "\ts.kill()\n}\n\n// onEnded", "\ts.r.emit(Stop{s.n, s.token})\n}\n\n// onEnded"),
			killer: shardChaos,
		},
		{
			name: "a coordinator takes a list of active shards for the present one",
			rule: "a sum stands for the list with this sum only [S8c]",
			edits: []edit{
				{shardDir + "region.go", "\tif rep.Held != t.Held {", "\tif t.Held == 0 {"},
				{shardDir + "allocation.go", "\tcase known.Held != r.Held:", "\tcase false:"},
			},
			killer: plannedMoves,
		},
		{
			name:   "the lease is released when entities are told to stop",
			rule:   "a lease is released when every entity has terminated [S3]",
			edits:  in(shardDir+"shard.go", "\ts.r.emit(Stop{s.n, s.token})\n}", "\ts.r.emit(Stop{s.n, s.token})\n\ts.r.emit(Release{s.n, s.token})\n}"),
			killer: plannedMoves,
		},
		{
			name:   "the next home is notified before the release is confirmed",
			rule:   "a shard is announced as free when its release is certain [S4]",
			edits:  in(shardDir+"shard.go", "\t\ts.r.emit(Release{s.n, s.token})\n\t}\n}\n\nfunc (s *shard) onReleased", "\t\ts.r.emit(Release{s.n, s.token})\n\t\ta := s.r.table.entries[s.n]\n\t\ts.r.tell(a.Home, Free{s.n, a.Version, Blank{}})\n\t}\n}\n\nfunc (s *shard) onReleased"),
			killer: plannedMoves,
		},
		{
			name:   "a region that waits for a lease keeps waiting after the shard was reassigned",
			rule:   "a region that waits for a lease can be reassigned [S4b]",
			edits:  in(shardDir+"shard.go", "\tcase Waiting:\n\t\tif !s.assigned() {", "\tcase Waiting:\n\t\tif false {"),
			killer: shardChaos,
		},
		{
			name: "a region without a tenure does not answer whether the shard is free",
			rule: "a region without a tenure says so when asked [S4c]",
			edits: []edit{
				{shardDir + "shard.go", "\tif s.phase == Away {\n\t\ts.r.tell(from,", "\tif false {\n\t\ts.r.tell(from,"},
				{shardDir + "shard.go", "|| !s.r.now.Before(s.since.Add(s.r.cfg.Patience)) {", "{"},
			},
			killer: shardChaos,
		},
		{
			name: "a grant that arrives too late is kept",
			rule: "a grant that is no longer wanted is released [S5]",
			edits: []edit{
				{shardDir + "shard.go", "\t\t\ts.enter(Releasing) // until the attempt has ended", "\t\t\ts.gone(Blank{})"},
				{shardDir + "shard.go", "\tcase ev.Token != s.token:\n", "\tcase false:\n"},
			},
			killer: killer{pkg: shardCore, run: "^TestShard_GivesBackAGrantThatIsNotWantedAnyMore$"},
		},
		{
			name: "new assignments are sent once",
			rule: "assignments are repeated until they are heard [S6]",
			edits: []edit{
				{shardDir + "allocation.go", "\t\tcase r.Sum != t.Sum:\n", "\t\tcase false:\n"},
				{shardDir + "allocation.go", "|| r.Sum != t.Sum && (r.N < c.full || r.N > c.n):", ":"},
			},
			killer: shardChaos,
		},
		{
			name: "the latest message counts, not the largest version",
			rule: "of two assignments, the larger version counts [S6b]",
			edits: []edit{
				{shardDir + "table.go", "if !was.Version.Less(e.Version) {", "if was.Version == e.Version {"},
				{shardDir + "region.go", "\tif t.Epoch < r.epoch {\n\t\treturn", "\tif false {\n\t\treturn"},
			},
			killer: shardChaos,
		},
		{
			name:   "a late table of an earlier coordinator is not sent to regions that agreed before",
			rule:   "assignments are repeated until they are heard [S6c]",
			edits:  in(shardDir+"allocation.go", "|| r.Sum != t.Sum && (r.N < c.full || r.N > c.n):", ":"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_TellsWhatCameLateToThoseThatAgreed$"},
		},
		{
			name: "a new coordinator assigns before the regions have reported",
			rule: "a coordinator first listens, then decides [S7]",
			edits: []edit{
				{shardDir + "allocation.go", "\tif c.settled {\n", "\tc.settled = true\n\t{\n"},
				{shardDir + "allocation.go", "c.missing(m) && c.now.Before(c.begun.Add(c.cfg.Fit))", "false"},
			},
			killer: killer{pkg: shardCore, run: "^TestAllocation_ListensBeforeItDecides$"},
		},
		{
			name:   "a new coordinator takes shards from a home that it has not heard yet",
			rule:   "a home in view that has not reported yet keeps its shards as long as one that has [S7b]",
			edits:  in(shardDir+"allocation.go", "c.missing(m) && c.now.Before(c.begun.Add(c.cfg.Fit))", "false"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_AHomeThatWasNotHeardYetKeepsItsShards$"},
		},
		{
			name:   "a region that does not hear the coordinator remains a host",
			rule:   "a member is fit if it hears the coordinator [S8]",
			edits:  in(shardDir+"allocation.go", "!c.now.After(r.heard.Add(c.cfg.Fit)) &&\n\t\t", ""),
			killer: shardChaos,
		},
		{
			name:   "a coordinator takes shards from a home that it has heard within Fit",
			rule:   "a member is fit for Fit after a report that names the epoch [S8]",
			edits:  in(shardDir+"allocation.go", "!c.now.After(r.heard.Add(c.cfg.Fit)) &&\n\t\t", "!c.now.After(r.heard.Add(c.cfg.Fit/2)) && "),
			killer: killer{pkg: shardCore, run: "^TestSimulation_OfFiveMembers$", args: "-whole"},
		},
		{
			name:   "shards move for balance while versions differ",
			rule:   "while versions differ, shards move only to homes that users have named [S27b]",
			edits:  in(shardDir+"balance.go", "case c.cfg.Consult, len(c.newest) > 0:", "case c.cfg.Consult:"),
			killer: killer{pkg: "./sharding", run: "^TestRollingUpdate_MovesEachShardAtMostTwiceAndLosesNothing$"},
		},
		{
			name:   "a shard whose home leaves goes to any member while versions differ",
			rule:   "a shard whose home leaves goes to a member of the newest version [S27b]",
			edits:  in(shardDir+"balance.go", "if len(newest) > 0 {", "if false {"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_PrefersTheNewestVersion$"},
		},
		{
			name:   "a report counts although a later one has arrived",
			rule:   "a report that a later one has overtaken does not count [S8b]",
			edits:  in(shardDir+"allocation.go", "(r.Beat <= c.reports[i].Beat || r.Beat > c.beats)", "r.Beat > c.beats"),
			killer: killer{pkg: shardCore, run: "^TestSavedMoves$/a_report_overtaken"},
		},
		{
			name:   "a report from before a member returned into view counts",
			rule:   "a report that a later one has overtaken does not count [S8b]",
			edits:  in(shardDir+"allocation.go", "report{from: m, Report: Report{Beat: c.beats}}", "report{from: m}"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_AReportFromBeforeTheReturnDoesNotCount$"},
		},
		{
			name:   "a region answers with the number of each table, not the largest",
			rule:   "a report is numbered by the latest table that its region has heard [S8b]",
			edits:  in(shardDir+"region.go", "r.beat = max(r.beat, t.Beat)", "r.beat = t.Beat"),
			killer: killer{pkg: shardCore, run: "^TestRegion_ReportsTheLargestBeat$"},
		},
		{
			name:   "a coordinator that is made again under its tenure counts from zero",
			rule:   "of two assignments, the larger version counts [S6b]",
			edits:  in(shardDir+"allocation.go", "if before != nil && before.epoch == epoch {", "if false {"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_GoesOnCountingUnderATenure$"},
		},
		{
			name:   "a region that agrees with the coordinator does not answer it",
			rule:   "a region answers each table of the newest coordinator [S6]",
			edits:  in(shardDir+"region.go", "	r.report(from, t)\n}", "	if len(t.Entries) > 0 {\n		r.report(from, t)\n	}\n}"),
			killer: shardChaos,
		},
		{
			name:   "a region cut off from the coordinator keeps its shards",
			rule:   "a region cut off from the coordinator gives up its shards [S9]",
			edits:  in(shardDir+"region.go", "if r.active == 0 || r.orphan", "if r.active >= 0 || r.orphan"),
			killer: shardChaos,
		},
		{
			name:   "a region without a coordinator gives up its shards without a check",
			rule:   "without another coordinator, a region keeps its shards [S9b]",
			edits:  in(shardDir+"region.go", "if ev.Other && !r.orphaned()", "if !r.orphaned()"),
			killer: shardChaos,
		},
		{
			name:   "a look at the coordinator's lease does not survive a panic of the store",
			rule:   "a look that fails concludes nothing [S9b]",
			edits:  in("sharding/tenancy.go", "_, err = guarded(func() (coordination.Holder, error) { return lease.Renewed(ctx) })", "_, err = lease.Renewed(ctx)"),
			killer: killer{pkg: "./sharding", run: "^TestOrphan_AStoreThatFailsItsLookTakesNoShard$"},
		},
		{
			name:   "a region cut off from the coordinator waits for a whole TTL",
			rule:   "it gives its shards up once the coordinator was seen to renew its lease [S9]",
			edits:  in("sharding/tenancy.go", "return lease.Renewed(ctx) })", "<-ctx.Done(); return h, ctx.Err() })"),
			killer: killer{pkg: "./sharding", run: "^TestOrphan_GivesUpAfterARenewalOfTheCoordinator$"},
		},
		{
			name:   "an announcement of an ended tenure is accepted",
			rule:   "after a message of the host that ends a tenure, nothing is sent under it [S10]",
			edits:  in(shardDir+"route.go", "token <= s.to || token <= s.floor", "token <= s.to"),
			killer: killer{pkg: shardCore, run: "^TestRoute_ATenureThatWasPausedStaysSo$"},
		},
		{
			name:   "a host that is not in view counts as having ended its tenure",
			rule:   "only a message of the host ends a tenure [S10b]",
			edits:  in(shardDir+"route.go", "\ts.shut()\n\tif slices.Contains", "\ts.forget(s.to)\n\tif slices.Contains"),
			killer: shardChaos,
		},
		{
			name:   "entities are stopped without waiting for the other regions",
			rule:   "a host stops its entities when every region has flushed [S11]",
			edits:  in(shardDir+"shard.go", "\tif s.r.now.Before(s.since.Add(s.r.cfg.FlushTimeout)) {", "\tif false {"),
			killer: plannedMoves,
		},
		{
			name:   "a host ignores the number of the last message in a Flush",
			rule:   "a host waits for the messages that were sent before Flush [S11b]",
			edits:  in(shardDir+"shard.go", "(!d.flushed || s.heard[d.from] < d.number)", "!d.flushed"),
			killer: plannedMoves,
		},
		{
			name:   "a region that was asked to hold back messages sends more",
			rule:   "a host stops its entities when every region has flushed [S11c]",
			edits:  in(shardDir+"route.go", "\ts.forget(token)\n\ts.paused = s.paused ||", "\ts.paused = s.paused ||"),
			killer: plannedMoves,
		},
		{
			name:   "a sender goes on with messages that need no step of its region, after it was asked to hold back",
			rule:   "a host stops its entities when every region has flushed [S11d]",
			edits:  in(shardDir+"route.go", "\t\ts.r.emit(Shut{s.n})\n", ""),
			killer: plannedMoves,
		},
		{
			name:   "a host is not told of the last message that it waits for",
			rule:   "a host waits for the messages that were sent before Flush, and no longer [S11e]",
			edits:  in(laneDir+"in.go", "\tif i.admit.Count {", "\tif false {"),
			killer: killer{pkg: shardCore, run: "^TestIntake_TheLastMessageEndsTheWait$"},
		},
		{
			name:   "a host does not wait for a delivery that is on its way to the region",
			rule:   "a host waits for the messages that were sent before Flush [S11f]",
			edits:  in(shardDir+"shard.go", "\t\tif !s.counted || s.came < s.admitted {", "\t\tif false {"),
			killer: killer{pkg: shardCore, run: "^TestIntake_ADeliveryOnItsWayIsWaitedFor$"},
		},
		{
			name:   "a region ends before its last messages have arrived",
			rule:   "a region ends when all members have confirmed its messages [S11g]",
			edits:  in(shardDir+"credit.go", " || !r.finish.IsZero())", ")"),
			killer: killer{pkg: shardCore, run: "^TestRegion_EndsWhenItsMessagesHaveArrived$"},
		},
		{
			name:   "messages that wait when a life ends are refused",
			rule:   "messages that wait when a life ends are handled in the next one",
			edits:  in("sharding/lives.go", "case !l.follows(), sender", "case true, sender"),
			killer: killer{pkg: "./sharding", run: "^TestLives_MessagesThatWaitAreHandledInTheNextLife$"},
		},

		{
			name:   "messages that need no step of the region are sent without bound",
			rule:   "what a member has not taken is bounded [S39]",
			edits:  in(laneDir+"flow.go", "if f.sent-f.taken >= f.credit", "if f.credit == 0"),
			killer: killer{pkg: "./sharding", run: "^TestCredit_AStoppedHostHoldsUpNoOther$"},
		},
		{
			name:   "a host accepts messages of other members before it checks their number",
			rule:   "numbers under one tenure rise [S12b]",
			edits:  in("sharding/wireinlet.go", "if (v == lane.Accepted || v == lane.Awaited) && d.Delivery == 0", "if v != lane.Strange && d.Delivery == 0"),
			killer: killer{pkg: "./sharding", run: "^TestInlet_"},
		},
		{
			name:   "messages for another tenure are accepted",
			rule:   "a message is for one tenure [S12]",
			edits:  in(laneDir+"in.go", " || d.Token != i.admit.Token:", ":"),
			killer: shardChaos,
		},
		{
			name:   "repeated or overtaken messages are accepted",
			rule:   "numbers under one tenure rise [S12b]",
			edits:  in(laneDir+"in.go", "case d.Number <= i.last[from]:", "case false:"),
			killer: shardChaos,
		},
		{
			name:   "calls to a host that is gone wait",
			rule:   "what a host that is gone was sent is not answered [S13b]",
			edits:  in(shardDir+"route.go", "\t\ts.last = 0\n\t}\n\ts.orphan()\n", "\t\ts.last = 0\n\t}\n"),
			killer: killer{pkg: shardCore, run: "^TestRoute_OrphansWhatALostHostDoesNotAnswer$"},
		},
		{
			name:   "a message that meets no tenure is not answered",
			rule:   "a message that meets no tenure is answered [S13]",
			edits:  in(shardDir+"route.go", "\ts.r.tell(from, NotHere{s.n, d.Token})\n", ""),
			killer: shardChaos,
		},
		{
			name:   "the buffer of a shard has no bound",
			rule:   "buffers are bounded [S17]",
			edits:  in(laneDir+"out.go", "if r == nil || int64(o.Len())", "if int64(o.Len()) < 0 && int64(o.Len())"),
			killer: shardChaos,
		},
		{
			name: "a shard moves again before it has arrived, and its last assigned home counts as its last holder",
			rule: "an assignment names every region that may still have the shard [S19]",
			edits: []edit{
				{shardDir + "allocation.go", "\t\tif !c.has(was.Home, s) {", "\t\tif false {"},
				{shardDir + "allocation.go", " ||\n\t\t!c.has(c.table.entries[ev.Shard].Home, ev.Shard) {", " {"},
			},
			killer: killer{pkg: shardCore, run: "^TestAllocation_NamesAllThatMayHaveAShard$"},
		},
		{
			name: "a Free message for an earlier assignment counts",
			rule: "a region announces a shard as free under one assignment [S19b]",
			edits: []edit{
				{shardDir + "shard.go", "s.phase != Waiting || f.Version != s.r.table.entries[s.n].Version {", "s.phase != Waiting {"},
				{shardDir + "shard.go", "s.freeOf == a.Version && ", ""},
			},
			killer: plannedMoves,
		},
		{
			name:   "a silent region that may still have a shard is awaited forever",
			rule:   "after a long silence, the store decides [S20]",
			edits:  in(shardDir+"shard.go", "|| !s.r.now.Before(s.since.Add(s.r.cfg.Patience)) {", "{"),
			killer: shardChaos,
		},
		{
			name:   "one failed call of the store counts as an outage",
			rule:   "a store fails when it has not answered until leases are near expiry [S30]",
			edits:  in("coordination/status.go", "\t\tc.Failed++\n", "\t\tc.Failed++\n\t\ts.stats.expired = true\n"),
			killer: killer{pkg: "./coordination", run: "^TestOnLost_OneNoticeForAllLeases$"},
		},
		{
			name:   "messages go to an entity that was told to stop",
			rule:   "messages after the stop request wait for the next incarnation [S14]",
			edits:  in(shardDir+"slot.go", "e.state == running && !s.killed", "(e.state == running || e.state == ending) && !s.killed"),
			killer: plannedMoves,
		},
		{
			name:   "the next incarnation of an entity does not wait for the last one",
			rule:   "an entity is started again when it has terminated [S14b]",
			edits:  in(shardDir+"slot.go", "\tdefault:\n\t\ts.wait(b)\n", "\tdefault:\n\t\ts.wait(b)\n\t\tif e.state == ending {\n\t\t\ts.start(e)\n\t\t}\n"),
			killer: plannedMoves,
		},
		{
			name:   "messages for an ending entity are dropped when its shard is given up",
			rule:   "a hand-off drains waiting messages [S15]",
			edits:  in(shardDir+"slot.go", "\tcase len(s.waiting[e.id]) > 0:\n\t\ts.start(e)\n\tdefault:\n\t\ts.remove(e)\n\t}\n}\n\nfunc (s *Slot) backOff", "\tcase len(s.waiting[e.id]) > 0 && !s.stopping:\n\t\ts.start(e)\n\tdefault:\n\t\ts.remove(e)\n\t}\n}\n\nfunc (s *Slot) backOff"),
			killer: plannedMoves,
		},
		{
			name:   "an entity that backs off is forgotten when its shard is given up",
			rule:   "a hand-off drains waiting messages [S15b]",
			edits:  in(shardDir+"slot.go", "\t\tcase e.state == ending, e.state == unknown:\n\t\tcase len(s.waiting[e.id]) > 0:", "\t\tcase e.state == ending, e.state == unknown:\n\t\tcase false:"),
			killer: killer{pkg: shardCore, run: "^TestSlot_WhatIsLeftComesFirst$"},
		},
		{
			name:   "unhandled messages of an entity that stops by itself are dropped",
			rule:   "an entity that stops leaves its mailbox to the next incarnation [S22]",
			edits:  in(shardDir+"slot.go", "slices.Concat(ev.Left, s.waiting[e.id])", "slices.Concat(s.waiting[e.id])"),
			killer: plannedMoves,
		},
		{
			name:   "messages that arrived while an entity was ending precede its unhandled messages",
			rule:   "messages of one sender to one entity are handled in order [S22b]",
			edits:  in(shardDir+"slot.go", "slices.Concat(ev.Left, s.waiting[e.id])", "slices.Concat(s.waiting[e.id], ev.Left)"),
			killer: killer{pkg: shardCore, run: "^TestSlot_WhatIsLeftComesFirst$"},
		},
		{
			name:   "more entities run than the limit allows",
			rule:   "above the limit, the least recently used entities are passivated [S34]",
			edits:  in(shardDir+"slot.go", "\t\ts.end(e)\n\t}\n\ts.trim()\n}", "\t\ts.end(e)\n\t}\n}"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_OfALimit$"},
		},
		{
			name:   "the most recently used entity is passivated",
			rule:   "above the limit, the least recently used entities are passivated [S34b]",
			edits:  in(shardDir+"evict.go", "\tif l := r.old(); l.last != nil {\n\t\treturn l.last", "\tif l := r.old(); l.last != nil {\n\t\treturn l.first.next"),
			killer: killer{pkg: shardCore, run: "^TestSlot_PassivatesTheLeastRecentlyUsed$"},
		},
		{
			name:   "a lowered limit takes effect only with the next entity",
			rule:   "above the limit, the least recently used entities are passivated [S34c]",
			edits:  in(shardDir+"slot.go", "\t\ts.used.resize(ev.N)\n\t\ts.trim()\n", "\t\ts.used.resize(ev.N)\n"),
			killer: killer{pkg: shardCore, run: "^TestSlot_PassivatesTheLeastRecentlyUsed$"},
		},
		{
			name:   "the first message does not wait until its entity is remembered",
			rule:   "an entity handles nothing before a majority remembers it [S16]",
			edits:  in(shardDir+"slot.go", "case e == nil && (!s.cfg.Remember || s.known[b.ID]):", "case e == nil:"),
			killer: remembers,
		},
		{
			name:   "a new home starts remembered entities only when a message arrives",
			rule:   "remembered entities are started where their shard is [S16b]",
			edits:  in(shardDir+"slot_remember.go", "s.pending = ids\n\tif", "s.pending = nil\n\tif"),
			killer: killer{pkg: shardCore, run: "^TestSlot_KeepsWhatItRemembersRunning$"},
		},
		{
			name: "a new home starts the entities that its own replica remembers",
			rule: "a new home reads from a majority which entities are remembered [S16b]",
			edits: []edit{
				{"sharding/remember.go", "r.data, distributeddata.Linearizable)", "r.data)"},
				{"sharding/remember.go", "if len(ids)+len(former) == 0 {\n\t\treturn nil, nil", "if true {\n\t\treturn ids, nil"},
			},
			killer: killer{pkg: "./sharding", run: "^TestRemember_ANewHomeReadsAMajority$"},
		},
		{
			name:   "entities that another number of shards remembers are left there",
			rule:   "a shard takes its entities out of the sets of other numbers of shards [S16g]",
			edits:  in("sharding/remember.go", "\tlook(all)\n", ""),
			killer: killer{pkg: "./sharding", run: "^TestRemember_SurvivesAnotherNumberOfShards$"},
		},
		{
			name:   "the first member to start decides on the settings",
			rule:   "the settings that most members have count",
			edits:  in("sharding/agree.go", "b.missing > 0 && !late", "false"),
			killer: killer{pkg: "./sharding", run: "^TestSettings_MostMembersDecideAtAColdStart$"},
		},
		{
			name:   "a new home does not add again which entities it has read",
			rule:   "a late removal of an earlier home forgets no entity that the new home runs [S16c]",
			edits:  in("sharding/remember.go", "if len(ids)+len(former) == 0 {\n\t\treturn nil, nil", "if true {\n\t\treturn ids, nil"),
			killer: killer{pkg: "./sharding", run: "^TestRemember_ANewHomeAddsAgainWhatItHasRead$"},
		},
		{
			name:   "an entity that is not remembered yet handles messages when its shard is given up",
			rule:   "an entity handles nothing before a majority remembers it [S16c]",
			edits:  in(shardDir+"slot.go", "case e.state == ending, e.state == unknown:", "case e.state == ending:"),
			killer: remembers,
		},
		{
			name:   "a remembered entity that stops by itself is not started again",
			rule:   "a remembered entity runs until it asks to be forgotten [S16d]",
			edits:  in(shardDir+"slot.go", "again := (s.cfg.Remember && itself", "again := (false && itself"),
			killer: killer{pkg: shardCore, run: "^TestSlot_KeepsWhatItRemembersRunning$"},
		},
		{
			name:   "an entity that ends at each start is started again at once",
			rule:   "an entity that ends by itself without having handled a message backs off [S22c]",
			edits:  in(shardDir+"slot.go", "ev.Failed || itself && !ev.Worked", "ev.Failed"),
			killer: killer{pkg: shardCore, run: "^TestSlot_AnEntityThatEndsAtEachStart$"},
		},
		{
			name:   "homes are chosen by number modulo members",
			rule:   "with rendezvous hashing, only a newcomer gets shards [S26]",
			edits:  in(shardDir+"balance.go", "\treturn slices.MaxFunc(fit, func(a, b Member) int {\n\t\treturn cmp.Compare(weight(uint64(s), a), weight(uint64(s), b))\n\t})", "\treturn fit[s%len(fit)]"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_RendezvousMovesOnlyToTheNewcomer$"},
		},
		{
			name:   "equal members get the next shard in the same order for each type",
			rule:   "the odd shards of types go to different members [S26]",
			edits:  in(shardDir+"allocation.go", "odd: hash(cfg.Type), ", ""),
			killer: killer{pkg: shardCore, run: "^TestAllocation_NoMemberGetsTheOddShardOfEveryType$"},
		},
		{
			name:   "a wish for a member that is not fit is followed",
			rule:   "a wish counts while its member is fit [S35]",
			edits:  in(shardDir+"wish.go", "i := slices.IndexFunc(fit, func(m Member) bool { return m.ID == name || m.Address == name })\n\tif i < 0 {\n\t\treturn Member{}, false\n\t}\n\treturn fit[i], true", "i := slices.IndexFunc(fit, func(m Member) bool { return m.ID == name || m.Address == name })\n\tif i < 0 {\n\t\treturn Member{ID: name, Incarnation: 1}, true\n\t}\n\treturn fit[i], true"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Wishes$", args: "-whole"},
		},
		{
			name:   "a shard with a wish is moved for balance",
			rule:   "a shard with a wish is not moved for balance [S35b]",
			edits:  in(shardDir+"balance.go", "\t\t\t_, ok := c.wished(s, fit)\n\t\t\treturn ok\n", "\t\t\treturn false\n"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_FollowsWishesForMembersThatAreFit$"},
		},
		{
			name:   "a shard waits for the user's function forever",
			rule:   "a shard without a home waits for the user's function for a bounded time [S36]",
			edits:  in(shardDir+"wish.go", "return c.open && c.now.Before(c.asked.Add(c.cfg.Answer))", "return c.open"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Consults$", args: "-whole"},
		},
		{
			name:   "a late answer to an earlier question is accepted",
			rule:   "an answer counts only for its question [S36b]",
			edits:  in(shardDir+"wish.go", "if !c.open || ev.Round != c.round {", "if !c.open {"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_WaitsForAnAnswerButNotForLong$"},
		},
		{
			name:   "a worker that was asked to end is not started again",
			rule:   "a worker that is kept alive is started again after every end [S37]",
			edits:  in(shardDir+"slot.go", "itself || s.cfg.Keep) && !s.stopping", "itself) && !s.stopping"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Daemons$", args: "-whole"},
		},
		{
			name:   "a worker can ask to be forgotten",
			rule:   "a worker that is kept alive is not forgotten [S37b]",
			edits:  in(shardDir+"slot.go", "e.forget = ev.Forget && !s.cfg.Keep", "e.forget = ev.Forget"),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Daemons$", args: "-whole"},
		},
		{
			name:   "with SLRU, an entity that was used again is passivated like one that was used once",
			rule:   "SLRU keeps entities that were used again apart [S34d]",
			edits:  in(shardDir+"evict.go", "\tr.proven.add(e)\n\tr.settle()\n", "\tr.old().add(e)\n\tr.settle()\n"),
			killer: killer{pkg: shardCore, run: "^TestPolicy_SLRUIsAsAPlainModelSays$"},
		},
		{
			name:   "with LFU, every new entity is admitted",
			rule:   "of two entities, LFU keeps the one that is used more often [S34e]",
			edits:  in(shardDir+"evict.go", "r.sketch.times(candidate.id) <= r.sketch.times(oldest.id)", "false"),
			killer: killer{pkg: shardCore, run: "^TestPolicy_HitRates$"},
		},
		{
			name:   "the sketch of LFU never ages",
			rule:   "an entity that was used often long ago gives way [S34f]",
			edits:  in(shardDir+"sketch.go", "k.words[i] = k.words[i] >> 1 & 0x7777777777777777", "_ = i"),
			killer: killer{pkg: shardCore, run: "^TestPolicy_LFUForgetsWhatWasUsedLongAgo$"},
		},
		{
			name:   "the last members wait for one that has stopped and is still listed",
			rule:   "a member that was not heard for a while does not count as one that may host [S29]",
			edits:  in(shardDir+"allocation.go", "c.fit(m, true) || c.unheard(m) }", "c.fit(m, true) || c.of(m) == nil }"),
			killer: killer{pkg: "./sharding", run: "^TestClose_TheLastTwoAtOnce$"},
		},
		{
			name:   "a region that leaves with all others takes shards again",
			rule:   "a leaving region that was told that all leave takes no shard again [S29b]",
			edits:  in(shardDir+"region.go", "over := r.over || t.Over && r.leaving;", "over := t.Over && r.leaving;"),
			killer: killer{pkg: shardCore, run: "^TestRegion_TakesNoShardAgainAfterAllLeave$"},
		},
		{
			name:   "a region ends in silence",
			rule:   "a region that has ended tells every member [S29c]",
			edits:  in(shardDir+"region.go", "\t\tr.tell(to, Farewell())\n", "\t\t_ = to\n"),
			killer: killer{pkg: "./sharding", run: "^TestClose_AllTogether$"},
		},
		{
			name:   "a coordinator does not know of regions that ended before it began",
			rule:   "a coordinator does not wait for a region that has ended [S29c]",
			edits:  in("sharding/coordinator.go", "if first {", "if first && false {"),
			killer: killer{pkg: "./sharding", run: "^TestClose_AllTogether$"},
		},

		{
			name:   "nobody asks what a member has taken when only deliveries wait for that",
			rule:   "a delivery is sent until it is confirmed [S38], also when a question was lost [S39b]",
			edits:  in(shardDir+"outbox.go", "\ts.onBlocked(ev.Token)\n", ""),
			killer: delivers,
		},
		{
			name:   "a member is asked once what it has taken",
			rule:   "a lost question or answer about credit is repeated [S39b]",
			edits:  in(shardDir+"credit.go", "\t\t\tr.askAt = r.now.Add(r.cfg.Repeat)\n", ""),
			killer: killer{pkg: shardCore, run: "^TestCredit_IsAskedForAgain$"},
		},
		{
			name:   "a delivery is not sent under the next tenure, nor again",
			rule:   "a delivery is kept by its sender until it is confirmed [S38]",
			edits:  []edit{{shardDir + "route.go", "\ts.redeliver()\n", ""}, {shardDir + "outbox.go", "if !d.concluded && !s.r.now.Before(d.due) {", "if false {"}},
			killer: delivers,
		},
		{
			name:   "a delivery is confirmed when its host gets it",
			rule:   "a delivery is confirmed when it was handled [S38b]",
			edits:  in(shardDir+"inbox.go", "\ts.accepted[id] = false\n", "\ts.accepted[id] = false\n\ts.confirm(from, number)\n"),
			killer: delivers,
		},
		{
			name:   "a delivery is confirmed although its handler failed, or its tenure ended meanwhile",
			rule:   "a delivery is confirmed when it was handled [S38b]",
			edits:  in(shardDir+"inbox.go", "\tif ev.OK {\n\t\ts.confirm(", "\tif true {\n\t\ts.confirm("),
			killer: delivers,
		},
		{
			name:   "a delivery that outlived its lease counts as handled",
			rule:   "a delivery is confirmed when its tenure was held after its handler [S38b]",
			edits:  in("sharding/mailbox.go", "d.report(returned && m.cell.tenure.Check() == nil)", "d.report(returned)"),
			killer: killer{pkg: "./sharding", run: "^TestDeliver_AHandlerThatOutlivesItsLeaseHasNotHandled$"},
		},
		{
			name:   "a copy of a delivery that waits for its entity is passed to it too",
			rule:   "during one tenure a host drops copies of a delivery [S38c]",
			edits:  in(shardDir+"inbox.go", "\ts.accepted[id] = false\n", ""),
			killer: delivers,
		},
		{
			name:   "a delivery is sent again after it was confirmed",
			rule:   "a delivery is kept by its sender until it is confirmed [S38]",
			edits:  in(shardDir+"outbox.go", "if !d.concluded && !s.r.now.Before(d.due) {", "if !s.r.now.Before(d.due) {"),
			killer: delivers,
		},
		{
			name:   "a lost confirmation is not repeated",
			rule:   "a copy of a delivery that was handled is confirmed again [S38c]",
			edits:  in(shardDir+"inbox.go", "\t\tif handled {\n", "\t\tif false && handled {\n"),
			killer: delivers,
		},
		{
			name:   "any number of deliveries is accepted",
			rule:   "deliveries are bounded as buffers are [S38d]",
			edits:  in(shardDir+"outbox.go", "len(o.deliveries) >= max(1, c.Buffer/shareOfBuffer),", "false,"),
			killer: killer{pkg: shardCore, run: "^TestDelivery_IsBounded$"},
		},
		{
			name:   "a phase change of a shard is not shown",
			rule:   "status shows every change of a shard",
			edits:  in(shardDir+"shard.go", "\ts.phase, s.since = p, s.r.now\n\ts.mark()", "\ts.phase, s.since = p, s.r.now"),
			killer: shardChaos,
		},
		{
			name:   "a new home of a shard is not shown",
			rule:   "status shows every change of a shard",
			edits:  in(shardDir+"region.go", "\tr.shards[n].mark()\n\tdo(", "\tdo("),
			killer: plannedMoves,
		},
		{
			name:   "any number of messages waits for entities that do not run yet",
			rule:   "buffers are bounded [S17]",
			edits:  in(shardDir+"slot.go", "s.cfg.Room != nil && !s.cfg.Room.Has(s.held)", "false"),
			killer: killer{pkg: "./sharding", run: "^TestRemember_WhatWaitsForAMajorityIsBounded$"},
		},
		{
			name:   "room for messages that wait is not given back",
			rule:   "buffers are bounded [S17]",
			edits:  in(shardDir+"slot.go", "\ts.hold(-len(waited))\n", ""),
			killer: killer{pkg: shardCore, run: "^TestSlot_WhatWaitsIsBounded$"},
		},
		{
			name:   "shards move for balance as soon as the view has changed",
			rule:   "no shard moves by choice for Stable after the view has changed [S27]",
			edits:  in(shardDir+"balance.go", "c.now.Before(c.changed.Add(c.cfg.Stable))", "false"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_MovesForBalanceAFewAtATime$"},
		},
		{
			name:   "shards move for balance while a member cannot host",
			rule:   "no shard moves by choice while a member is not fit [S27]",
			edits:  in(shardDir+"balance.go", "len(fit) != len(c.view) ||", "false ||"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_MovesNothingForBalanceWhileAMemberCannotHost$"},
		},
		{
			name:   "any number of shards moves for balance at once",
			rule:   "no shard moves by choice while Moves shards are moving [S27]",
			edits:  in(shardDir+"balance.go", "\t\t} else {\n\t\t\troom--\n\t\t}", "\t\t}"),
			killer: killer{pkg: shardCore, run: "^TestAllocation_MovesForBalanceAFewAtATime$"},
		},
		{
			name:   "all shards try a failing store five times a second",
			rule:   "a region tries a store that does not answer less and less often",
			edits:  in(shardDir+"shard.go", "unknownPause<<min(s.unanswered, 16)", "unknownPause"),
			killer: killer{pkg: shardCore, run: "^TestShard_TriesAFailingStoreLessAndLessOften$"},
		},
		{
			name:   "each failed attempt at a lease is logged",
			rule:   "an outage of the store does not flood the log",
			edits:  in("sharding/control.go", "unlogged, due := c.attempts.Due(c.life.clock.Now(), quiet); due", "unlogged := 0; true"),
			killer: killer{pkg: "./sharding", run: "^TestLease_AStoreThatFailsIsTriedAgain$"},
		},
		{
			name:   "each failed call for remembered entities is logged",
			rule:   "a member without a majority does not flood the log",
			edits:  in("sharding/remember.go", "life.recalls.Due(life.clock.Now(), quiet)", "life.recalls.Due(life.clock.Now(), 0)"),
			killer: killer{pkg: "./sharding", run: "^TestLog_NoMajorityForRememberedEntitiesIsALineInTenSeconds$"},
		},
		{
			name:   "remembered entities are all started at once",
			rule:   "remembered entities are started at the pace of their member [S16e]",
			edits:  in(shardDir+"slot_remember.go", "if s.cfg.Pace == nil {", "if true {"),
			killer: killer{pkg: "./sharding", run: "^TestRecoverRate_EntitiesStartAtARate$"},
		},
		{
			name:   "only the first turn of a shard starts remembered entities",
			rule:   "remembered entities are started at the pace of their member [S16e]",
			edits:  in(shardDir+"slot.go", "\ts.resume()\n", ""),
			killer: killer{pkg: shardCore, run: "^TestSimulation_Remembers$", args: "-whole"},
		},
		{
			name:   "each shard has a pace of its own",
			rule:   "remembered entities are started at the pace of their member [S16e]",
			edits:  in("sharding/internal/lane/pace.go", "if p.next.After(at) {", "if false {"),
			killer: killer{pkg: shardCore, run: "^TestSlot_StartsWhatItRemembersAtAPace$"},
		},
		{
			name:   "a member starts entities of other shards that a store returns",
			rule:   "an entity runs in its own shard [S40]",
			edits:  in("sharding/remember.go", "err = m.place.owns(id)", "err = nil"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_ReturnsIdsThatCannotBe$"},
		},
		{
			name:   "a member starts entities of other shards that a peer names",
			rule:   "an entity runs in its own shard [S40]",
			edits:  in("sharding/wireinlet.go", "err != nil {\n\t\t\td = core.Data", "false {\n\t\t\td = core.Data"),
			killer: killer{pkg: "./sharding", run: "^TestInlet_"},
		},
		{
			name:   "a store of remembered entities ignores tokens",
			rule:   "a store of remembered entities rejects calls of earlier tenures [S16f]",
			edits:  in("testkit/remembertest/memory.go", "if of.Token < c.last.Token ||", "if"),
			killer: killer{pkg: "./testkit/remembertest", run: "^TestMemory$"},
		},
		{
			name:   "calls of a store of remembered entities are not numbered",
			rule:   "a removal that timed out and takes effect late removes no entity [S16f]",
			edits:  in("sharding/remember.go", "		m.of.Seq++\n", ""),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_LateRemovalLosesNoEntity$"},
		},
		{
			name:   "a store of remembered entities that ends its goroutine is not called again",
			rule:   "a RememberStore may fail in any way",
			edits:  in("sharding/contained.go", "err = errors.New(\"it ended its goroutine\")", "_ = errors.New(\"\")"),
			killer: killer{pkg: "./sharding", run: "^TestRememberStore_ThatFailsIsCalledAgain$"},
		},
		{
			name:   "a region gives up its shards while there is no coordinator, and messages wait",
			rule:   "no message waits for the coordinator [S9b]",
			edits:  in(shardDir+"region.go", "\t\tr.emit(Look{})", "\t\tr.orphan = true\n\t\tr.settle()"),
			killer: killer{pkg: "./sharding", run: "^TestCoordinator_MovesOrDiesAndNoMessageWaits$"},
		},
		{
			name:   "a handler that ends its goroutine ends the announcements of shards",
			rule:   "handlers of ShardChanged do no harm",
			edits:  in("internal/contain/contain.go", "\tgo func() {\n\t\tdefer close(done)\n\t\tCall(", "\tfunc() {\n\t\tdefer close(done)\n\t\tCall("),
			killer: killer{pkg: "./sharding", run: "^TestShardChanged_IsPublished$"},
		},
		{
			name:   "an entity that ignores StopMessage keeps its shard forever",
			rule:   "entities are killed after HandOff [S23]",
			edits:  in(shardDir+"shard.go", "s.kill()\n\t\t}\n\t}\n\ts.ask()", "}\n\t}\n\ts.ask()"),
			killer: killer{pkg: "./sharding", run: "^TestStopMessage_AnEntityThatNeverStopsIsStopped$"},
		},
		{
			name:   "the prefix of a type's leases may end with a digit",
			rule:   "the leases of two types have different names",
			edits:  in("sharding/config.go", "n > 0 && isDigit(rune(c.LeasePrefix[n-1]))", "n < 0"),
			killer: killer{pkg: "./sharding", run: "^TestConfig_NoLeaseHasTwoTypes$"},
		},
		{
			name:   "the keeper of a shard stops before its entities",
			rule:   "a keeper stops after its entities",
			edits:  in("sharding/keeper.go", "if k.over && k.live <= 0 {", "if k.over {"),
			killer: killer{pkg: "./sharding", run: "^TestKeeper_WaitsForItsEntities$"},
		},
	}
}
