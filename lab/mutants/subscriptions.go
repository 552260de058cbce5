package main

// subscriptions are bugs in the notification of subscribers.
func subscriptions() []mutant {
	model := killer{pkg: "./distributeddata", run: "^TestSubscriptions_AreAsAPlainModelSays$"}
	return []mutant{
		{
			name:   "a subscription to a prefix precedes one to a key",
			rule:   "a subscriber is notified of a change once, through its most specific subscription",
			edits:  in("distributeddata", "\tif s := w.keys[key]; s != nil {\n\t\treturn s\n\t}\n\treturn w.longest(key)", "\tif s := w.longest(key); s != nil {\n\t\treturn s\n\t}\n\treturn w.keys[key]"),
			killer: model,
		},
		{
			name:   "a new subscription hides that an entry was deleted",
			rule:   "a subscriber that was notified of an entry is notified of its deletion",
			edits:  in("distributeddata", "if w.noted[key] != nil && !now.store.Empty() {", "if w.noted[key] != nil {"),
			killer: model,
		},
		{
			name:   "a walk hides that an entry was deleted",
			rule:   "a subscriber that was notified of an entry is notified of its deletion",
			edits:  in("distributeddata", "return !now.get(key).store.Empty()", "return true"),
			killer: model,
		},
		{
			name:   "a subscriber is never considered slow",
			rule:   "a slow subscriber has a bounded number of pending notices",
			edits:  in("distributeddata", "return w.asked >= windows", "return w.asked > 1000*windows"),
			killer: killer{pkg: "./distributeddata", run: "^TestSubscribe_ASlowSubscriberGetsTheNewest$"},
		},
	}
}
