package main

// cockpits are bugs of the cockpit, most of which would let somebody see or do what he must not, and
// of the times that it reads from the status of components.
func cockpits() []mutant {
	const pkg = "./cockpit"
	return []mutant{
		{
			name:   "the cockpit accepts every host name",
			rule:   "the cockpit refuses unknown host names, which prevents DNS rebinding",
			edits:  in("cockpit", "if !h.knownHost(r.Host) {", "if h.knownHost(r.Host) && false {"),
			killer: killer{pkg: pkg, run: "^TestGuard_OnlyThisMachineMayLook$"},
		},
		{
			name:   "pages of other sites can call the cockpit",
			rule:   "the cockpit refuses cross-origin requests",
			edits:  in("cockpit", "return err == nil && u.Host != \"\" && strings.EqualFold(u.Host, r.Host)", "return err == nil && u != nil"),
			killer: killer{pkg: pkg, run: "^TestGuard_OnlyThisMachineMayLook$"},
		},
		{
			name:   "every request through a proxy counts as local",
			rule:   "a request that a proxy forwarded needs Authorize",
			edits:  in("cockpit", "case forwarded(r):", "case false:"),
			killer: killer{pkg: pkg, run: "^TestGuard_OnlyThisMachineMayLook$"},
		},
		{
			name:   "permission to look is permission to act",
			rule:   "an action needs an authorization of its own",
			edits:  in("cockpit", "h.admit(r, to.need)", "h.admit(r, Look)"),
			killer: killer{pkg: pkg, run: "^TestActions_AreOffUnlessAllowedAndAuthorised$"},
		},
		{
			name:   "hidden entries are listed",
			rule:   "a hidden entry appears on no page",
			edits:  in("cockpit", "if h.hidden.has(e.Key) {", "if h.hidden.has(e.Key) && false {"),
			killer: killer{pkg: pkg, run: "^TestHide_NamesAreNowhere$"},
		},
		{
			name:   "the stream takes pictures although no page is open",
			rule:   "a handler without requests does nothing",
			edits:  in("cockpit", "\t\tb.mu.stop()\n\t\trunning = b.mu.running\n", "\t\trunning = nil\n"),
			killer: killer{pkg: pkg, run: "^TestStream_OnePictureServesAllPages$"},
		},
		{
			name:   "viewers that may not act are shown buttons",
			rule:   "the page has buttons only for clients with the permission to act",
			edits:  in("cockpit", "h.cfg.Actions &&\n\t\th.authorized(r, Act) == nil", "h.cfg.Actions"),
			killer: killer{pkg: pkg, run: "^TestActions_ThePageKnowsWhetherItMayAct$"},
		},
		{
			name:   "a shard can be moved to a member that does not exist",
			rule:   "the target of a move is in view and can host",
			edits:  in("cockpit", "a.To != \"\" && !hosts(c, st.Role, a.To)", "a.To == \"-\" && !hosts(c, st.Role, a.To)"),
			killer: killer{pkg: pkg, run: "^TestMove_SaysWhyItDoesNothing$"},
		},
		{
			name:   "a lag lasts while nobody looks",
			rule:   "the cockpit times only what it observes",
			edits:  in("cockpit", "if o.At.Sub(t.at) > most {", "if o.At.Sub(t.at) > most && false {"),
			killer: killer{pkg: "./cockpit/internal/view", run: "^TestTimes_AMemberIsBehindUntilItsLagIsZero$"},
		},
		{
			name:   "the take-over of a singleton begins with the previous tenure",
			rule:   "a take-over is the time without a known place",
			edits:  in("singleton", "next.Since.Sub(l.until)", "next.Since.Sub(l.Since)"),
			killer: killer{pkg: "./singleton", run: "^TestWatch_TellsOfEachMove$"},
		},
		{
			name:   "every report of a shard makes its status new",
			rule:   "Since changes only with state, home or token",
			edits:  in("sharding", "if s.State == state && s.Home == home && s.Token == token {", "if s.State == state && s.Home == home && s.Token == token && now.IsZero() {"),
			killer: killer{pkg: "./sharding", run: "^TestStatus_SaysSinceWhenAndAtWhoseRequest$"},
		},
	}
}
