package main

// singletons are bugs of the lease-gated singleton.
func singletons() []mutant {
	const dir, pkg, top = "singleton/internal/core/", "./singleton/internal/core", "./singleton"
	sim := killer{pkg: pkg, run: "TestSimulation_AtMostOneInstance", args: "-whole"}
	return []mutant{
		{
			name:   "release before the instance has stopped",
			rule:   "a tenure is released only when its instance has terminated",
			edits:  in(dir+"tenure.go", "m.emit(Stop{m.run})", "m.emit(Stop{m.run})\n\tm.release()"),
			killer: sim,
		},
		{
			name:   "release on loss without waiting for the instance",
			rule:   "a tenure is released only when its instance has terminated",
			edits:  in(dir+"tenure.go", "case Stopping:\n\t\tm.kill()", "case Stopping:\n\t\tm.kill()\n\t\tm.release()"),
			killer: golden(pkg, "loss"),
		},
		{
			name:   "start without the lease",
			rule:   "an instance is started only under a tenure",
			edits:  in(dir+"machine.go", "m.enter(AcquiringLease)\n", "m.start()\n\t\treturn\n"),
			killer: sim,
		},
		{
			name:   "go on after a loss",
			rule:   "a loss ends the instance at once",
			edits:  in(dir+"tenure.go", "m.enter(Stopping)\n\t\tm.emit(Pause{m.token})\n\t\tm.kill()", "m.enter(Active)"),
			killer: saved(pkg, "goes_on_after_a_loss"),
		},
		{
			name:   "a loss waits for the instance to finish",
			rule:   "the instance ends before the lease can be another's",
			edits:  in(dir+"tenure.go", "m.enter(Stopping)\n\t\tm.emit(Pause{m.token})\n\t\tm.kill()", "m.stop()"),
			killer: killer{pkg: top, run: "^TestScenario_AStubbornInstanceDoesNotOutliveItsLease$"},
		},
		{
			name:   "keep a grant that came too late",
			rule:   "what is granted unasked is released",
			edits:  in(dir+"tenure.go", "m.emit(Release{ev.Token})\n\t\t}", "_ = ev\n\t\t}"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "host although not oldest any more when the grant comes",
			rule:   "a grant is for the instance only if it is still wanted",
			edits:  in(dir+"tenure.go", "if !m.wanted() {\n\t\tm.release()", "if m.closing {\n\t\tm.release()"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "a second attempt beside one that is being cancelled",
			rule:   "there is one attempt to acquire at a time",
			edits:  in(dir+"machine.go", "m.enter(Cancelling)\n\tm.emit(Cancel{m.attempt})", "m.emit(Cancel{m.attempt})\n\tm.enter(Younger)"),
			killer: golden(pkg, "zombie"),
		},
		{
			name:   "host again after leaving",
			rule:   "who has left never hosts again",
			edits:  in(dir+"machine.go", "func (m *Machine) over() bool { return m.closing || m.ring.removed }", "func (m *Machine) over() bool { return m.closing }"),
			killer: golden(pkg, "removed"),
		},
		{
			name:   "a route believes a host of an older tenure",
			rule:   "a tenure with a smaller token is over, whatever its host believes",
			edits:  in(dir+"route.go", "|| r.host.known() && ev.Token < r.token {", "{"),
			killer: golden(pkg, "route_.*"),
		},
		{
			name:   "no bound of hops",
			rule:   "a message is passed on a bounded number of times",
			edits:  in("singleton/entry.go", "if n < 0 || n >= maxHops {", "if n < 0 {"),
			killer: killer{pkg: top, run: "TestHops_AreBounded"},
		},
		{
			name:   "no bound of what is kept for an instance",
			rule:   "everything is bounded; the newest are refused and counted",
			edits:  in("internal/stash/stash.go", "if s.Len() >= s.limit {", "if false {"),
			killer: killer{pkg: top, run: "TestBuffer_NewestAreRefusedAndCounted"},
		},
	}
}
