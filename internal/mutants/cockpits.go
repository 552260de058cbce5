package main

// cockpits are bugs of the cockpit, most of which would let somebody see or do what he must not.
func cockpits() []mutant {
	const dir, pkg = "cockpit/", "./cockpit"
	return []mutant{
		{
			name:   "the cockpit accepts every host name",
			rule:   "the cockpit refuses unknown host names, which prevents DNS rebinding",
			edits:  in(dir+"guard.go", "if !h.knownHost(r.Host) {", "if h.knownHost(r.Host) && false {"),
			killer: killer{pkg: pkg, run: "^TestGuard_OnlyThisMachineMayLook$"},
		},
		{
			name:   "pages of other sites can call the cockpit",
			rule:   "the cockpit refuses cross-origin requests",
			edits:  in(dir+"guard.go", "return err == nil && u.Host != \"\" && strings.EqualFold(u.Host, r.Host)", "return err == nil && u != nil"),
			killer: killer{pkg: pkg, run: "^TestGuard_OnlyThisMachineMayLook$"},
		},
		{
			name:   "every request through a proxy counts as local",
			rule:   "a request that a proxy forwarded needs Authorize",
			edits:  in(dir+"guard.go", "case forwarded(r.Header):", "case forwarded(r.Header) && false:"),
			killer: killer{pkg: pkg, run: "^TestGuard_OnlyThisMachineMayLook$"},
		},
		{
			name:   "permission to look is permission to act",
			rule:   "an action needs an authorization of its own",
			edits:  in(dir+"http.go", "h.admit(r, to.need)", "h.admit(r, Look)"),
			killer: killer{pkg: pkg, run: "^TestActions_AreOffUnlessAllowedAndAuthorised$"},
		},
		{
			name:   "hidden entries are listed",
			rule:   "a hidden entry appears on no page",
			edits:  in(dir+"pages.go", "if h.hidden.has(e.Key) {", "if h.hidden.has(e.Key) && false {"),
			killer: killer{pkg: pkg, run: "^TestHide_NamesAreNowhere$"},
		},
		{
			name:   "the stream takes pictures although no page is open",
			rule:   "a handler without requests does nothing",
			edits:  in(dir+"stream.go", "\t\tb.mu.stop()\n\t\trunning = b.mu.running\n", "\t\trunning = nil\n"),
			killer: killer{pkg: pkg, run: "^TestStream_OnePictureServesAllPages$"},
		},
	}
}
