package main

// messages are bugs of messages and deliveries to shards.
func messages() []mutant {
	return []mutant{
		{
			name:   "a host ignores the number of the last message in a Flush",
			rule:   "a host waits for the messages that were sent before Flush [S11b]",
			edits:  in("sharding", "(!d.flushed || s.heard[d.from] < d.number)", "!d.flushed"),
			killer: plannedMoves,
		},
		{
			name:   "a region that was asked to hold back messages sends more",
			rule:   "a host stops its entities when every region has flushed [S11c]",
			edits:  in("sharding", "\ts.forget(token)\n\ts.paused = s.paused ||", "\ts.paused = s.paused ||"),
			killer: plannedMoves,
		},
		{
			name:   "a sender goes on with messages that need no step of its region, after it was asked to hold back",
			rule:   "a host stops its entities when every region has flushed [S11d]",
			edits:  in("sharding", "\t\ts.r.emit(Shut{s.n})\n", ""),
			killer: plannedMoves,
		},
		{
			name:   "a host is not told of the last message that it waits for",
			rule:   "a host waits for the messages that were sent before Flush, and no longer [S11e]",
			edits:  in("sharding", "\tif i.admit.Count {", "\tif false {"),
			killer: killer{pkg: shardCore, run: "^TestIntake_TheLastMessageEndsTheWait$"},
		},
		{
			name:   "a delivery is sent again after two seconds",
			rule:   "a delivery that is not confirmed is sent again after 1s, 2s, 4s and so on",
			edits:  in("sharding", "resendAfter  = time.Second", "resendAfter  = 2 * time.Second"),
			killer: killer{pkg: "./sharding", run: "^TestDeliver_Errors$"},
		},
		{
			name:   "a host remembers one delivery less than promised",
			rule:   "a host drops copies among the last 1,024 deliveries of a shard",
			edits:  in("sharding", "rememberLast = 1024", "rememberLast = 1023"),
			killer: killer{pkg: "./sharding", run: "^TestDeliver_AHostKnowsTheLast1024$"},
		},
		{
			name:   "a host does not wait for a delivery that is on its way to the region",
			rule:   "a host waits for the messages that were sent before Flush [S11f]",
			edits:  in("sharding", "\t\tif !s.counted || s.came < s.admitted {", "\t\tif false {"),
			killer: killer{pkg: shardCore, run: "^TestIntake_ADeliveryOnItsWayIsWaitedFor$"},
		},
		{
			name:   "messages that wait when an incarnation ends are refused",
			rule:   "messages that wait when an incarnation ends are handled in the next one",
			edits:  in("sharding", "case !l.follows(), sender", "case true, sender"),
			killer: killer{pkg: "./sharding", run: "^TestRejoin_WaitingMessagesAreHandledAfterwards$"},
		},

		{
			name:   "messages that need no step of the region are sent without bound",
			rule:   "what a member has not taken is bounded [S39]",
			edits:  in("sharding", "if f.sent-f.taken >= f.credit", "if f.credit == 0"),
			killer: killer{pkg: "./sharding", run: "^TestCredit_AStoppedHostHoldsUpNoOther$"},
		},
		{
			name:   "a host accepts messages of other members before it checks their number",
			rule:   "numbers under one tenure rise [S12b]",
			edits:  in("sharding", "if (v == lane.Accepted || v == lane.Awaited) && d.Delivery == 0", "if v != lane.Strange && d.Delivery == 0"),
			killer: killer{pkg: "./sharding", run: "^TestReceiver_"},
		},
		{
			name:   "messages for another tenure are accepted",
			rule:   "a message is for one tenure [S12]",
			edits:  in("sharding", " || d.Token != i.admit.Token:", ":"),
			killer: shardChaos,
		},
		{
			name:   "repeated or overtaken messages are accepted",
			rule:   "numbers under one tenure rise [S12b]",
			edits:  in("sharding", "case d.Number <= i.last[from]:", "case false:"),
			killer: shardChaos,
		},
		{
			name:   "calls to a host that is gone wait",
			rule:   "what a host that is gone was sent is not answered [S13b]",
			edits:  in("sharding", "\t\ts.last = 0\n\t}\n\ts.orphan()\n", "\t\ts.last = 0\n\t}\n"),
			killer: killer{pkg: shardCore, run: "^TestRoute_OrphansWhatALostHostDoesNotAnswer$"},
		},
		{
			name:   "a message that meets no tenure is not answered",
			rule:   "a message that meets no tenure is answered [S13]",
			edits:  in("sharding", "\ts.r.tell(from, NotHere{s.n, d.Token})\n", ""),
			killer: shardChaos,
		},
		{
			name:   "the buffer of a shard has no bound",
			rule:   "buffers are bounded [S17]",
			edits:  in("sharding", "if r == nil || int64(o.Len())", "if int64(o.Len()) < 0 && int64(o.Len())"),
			killer: shardChaos,
		},

		{
			name:   "nobody asks what a member has taken when only deliveries wait for that",
			rule:   "a delivery is sent until it is confirmed [S38], also when a question was lost [S39b]",
			edits:  in("sharding", "\ts.onBlocked(ev.Token)\n", ""),
			killer: delivers,
		},
		{
			name:   "a member is asked once what it has taken",
			rule:   "a lost question or answer about credit is repeated [S39b]",
			edits:  in("sharding", "\t\t\tr.askAt = r.now.Add(r.cfg.Repeat)\n", ""),
			killer: killer{pkg: shardCore, run: "^TestCredit_IsAskedForAgain$"},
		},
		{
			name:   "a delivery is not sent under the next tenure, nor again",
			rule:   "a delivery is kept by its sender until it is confirmed [S38]",
			edits:  []edit{{"sharding", "\ts.redeliver()\n", ""}, {"sharding", "if !d.concluded && !s.r.now.Before(d.due) {", "if false {"}},
			killer: delivers,
		},
		{
			name:   "a delivery is confirmed when its host gets it",
			rule:   "a delivery is confirmed when it was handled [S38b]",
			edits:  in("sharding", "\ts.accepted[id] = false\n", "\ts.accepted[id] = false\n\ts.confirm(from, number)\n"),
			killer: delivers,
		},
		{
			name:   "a delivery is confirmed although its handler failed, or its tenure ended meanwhile",
			rule:   "a delivery is confirmed when it was handled [S38b]",
			edits:  in("sharding", "\tif ev.OK {\n\t\ts.confirm(", "\tif true {\n\t\ts.confirm("),
			killer: delivers,
		},
		{
			name:   "a delivery that outlived its lease counts as handled",
			rule:   "a delivery is confirmed when its tenure was held after its handler [S38b]",
			edits:  in("sharding", "d.report(returned && m.incarnation.tenure.Check() == nil)", "d.report(returned)"),
			killer: killer{pkg: "./sharding", run: "^TestDeliver_HandlerOutlivingItsLeaseDoesNotCount$"},
		},
		{
			name:   "a copy of a delivery that waits for its entity is passed to it too",
			rule:   "during one tenure a host drops copies of a delivery [S38c]",
			edits:  in("sharding", "\ts.accepted[id] = false\n", ""),
			killer: delivers,
		},
		{
			name:   "a delivery is sent again after it was confirmed",
			rule:   "a delivery is kept by its sender until it is confirmed [S38]",
			edits:  in("sharding", "if !d.concluded && !s.r.now.Before(d.due) {", "if !s.r.now.Before(d.due) {"),
			killer: delivers,
		},
		{
			name:   "a lost confirmation is not repeated",
			rule:   "a copy of a delivery that was handled is confirmed again [S38c]",
			edits:  in("sharding", "\t\tif handled {\n", "\t\tif false && handled {\n"),
			killer: delivers,
		},
		{
			name:   "any number of deliveries is accepted",
			rule:   "deliveries are bounded as buffers are [S38d]",
			edits:  in("sharding", "len(o.deliveries) >= max(1, c.Buffer/shareOfBuffer),", "false,"),
			killer: killer{pkg: shardCore, run: "^TestDelivery_IsBounded$"},
		},
		{
			name:   "any number of messages waits for entities that do not run yet",
			rule:   "buffers are bounded [S17]",
			edits:  in("sharding", "s.cfg.Room != nil && !s.cfg.Room.Has(s.held)", "false"),
			killer: killer{pkg: "./sharding", run: "^TestRemember_WhatWaitsForAMajorityIsBounded$"},
		},
		{
			name:   "room for messages that wait is not given back",
			rule:   "buffers are bounded [S17]",
			edits:  in("sharding", "\ts.hold(-len(waited))\n", ""),
			killer: killer{pkg: shardCore, run: "^TestSlot_WhatWaitsIsBounded$"},
		},
	}
}
