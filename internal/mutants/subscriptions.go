package main

// subscriptions are the bugs of who is told what.
func subscriptions() []mutant {
	const watcher = "distributeddata/watcher.go"
	model := killer{pkg: "./distributeddata", run: "^TestSubscriptions_AreAsAPlainModelSays$"}
	return []mutant{
		{
			name:   "a subscription to a key comes behind one to its prefix",
			rule:   "a subscriber is told of a change once, through the most specific subscription",
			edits:  in(watcher, "\tif s := w.keys[key]; s != nil {\n\t\treturn s\n\t}\n\treturn w.longest(key)", "\tif s := w.longest(key); s != nil {\n\t\treturn s\n\t}\n\treturn w.keys[key]"),
			killer: model,
		},
		{
			name:   "a new subscription hides that an entry has gone",
			rule:   "a subscriber that was told of an entry is told when it has gone",
			edits:  in(watcher, "if w.noted[key] != nil && !now.store.Empty() {", "if w.noted[key] != nil {"),
			killer: model,
		},
		{
			name:   "a walk hides that an entry has gone",
			rule:   "a subscriber that was told of an entry is told when it has gone",
			edits:  in(watcher, "return !now.get(key).store.Empty()", "return true"),
			killer: model,
		},
		{
			name:   "a subscriber is never slow",
			rule:   "a slow subscriber has a bounded number of notices waiting",
			edits:  in(watcher, "return w.asked >= windows", "return w.asked > 1000*windows"),
			killer: killer{pkg: "./distributeddata", run: "^TestSubscribe_ASlowSubscriberGetsTheNewest$"},
		},
	}
}
