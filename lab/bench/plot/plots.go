package main

// plot is one picture.
type plot struct {
	file, title string
	x, xTitle   string // the dimension in the names of benchmarks
	yTitle      string
	series      []series
	optional    bool // of make bench-peers: the file of results may not have it yet
}

// series is one line of a plot: a metric of the lines in a results file whose names contain all
// words of what.
type series struct {
	label string
	file  string
	what  string
	unit  string
	total bool // the metric is per item, and the plot shows the total
}

// both returns two series of a metric, before and now.
func both(label, name, what, unit string) []series {
	return []series{
		{label: label + ", before", file: name + "-before.txt", what: what, unit: unit},
		{label: label, file: name + ".txt", what: what, unit: unit},
	}
}

func members(file, title, yTitle string, of ...[]series) plot {
	p := plot{file: file, title: title, x: "members", xTitle: "members", yTitle: yTitle}
	for _, s := range of {
		p.series = append(p.series, s...)
	}
	return p
}

var plots = []plot{
	members("rest-messages", "At rest: messages a second of each member", "messages/s",
		both("heartbeats", "members", "case=rest", "msgs/s"), both("hellos", "hellos", "case=rest",
			"msgs/s")),
	members("rest-bytes", "At rest: bytes a second of each member", "B/s",
		both("heartbeats", "members", "case=rest", "B/s"), both("hellos", "hellos", "case=rest",
			"B/s")),
	members("rest-cpu", "At rest: processor time a second of each member, 10,000 keys", "µs/s",
		both("replication", "members", "case=rest", "cpu-µs/s")),
	members("update-bytes", "One update: bytes for each other member", "B",
		both("all that is sent", "members", "case=update", "B/member"),
		both("by the origin", "members", "case=update", "origin-B/member")),
	members("load-bytes", "Every member updates once a second: bytes of an update for each member",
		"B", both("all that is sent", "members", "case=load", "B/event/member")),
	members("load-cpu", "Every member updates once a second: processor time of an update at each member", "µs",
		both("processor time", "members", "case=load", "cpu-µs/event")),
	members("partition-bytes", "A healed partition, 20 updates: bytes of each member", "B",
		both("bytes", "members", "case=partition", "B/member")),
	members("partition-time", "A healed partition: time until all are equal", "ms",
		both("time", "members", "case=partition", "ms-to-equal")),
	members("join-messages", "A member joins: messages of each of the others", "messages",
		both("replication", "members", "case=join", "msgs/member"),
		both("hellos", "hellos", "case=join", "msgs/member")),
	members("join-bytes", "A member joins: bytes", "B",
		both("of each of the others", "members", "case=join", "B/member"),
		both("of the newcomer", "members", "case=join", "newcomer-B")),
	members("split-hellos", "A crash and a split into halves: hellos of each member", "hellos",
		both("a crash, in 30 s", "hellos", "case=crash", "msgs/member"),
		both("until the halves are one", "hellos", "case=split", "msgs/member")),
	{
		file: "slopes-calls", title: "Majority calls begun at once: processor time of all",
		x: "calls", xTitle: "calls", yTitle: "ns",
		series: []series{
			{"reads", "slopes.txt", "Calls/reads", "cpu-ns/call", true},
			{"writes", "slopes.txt", "Calls/writes", "cpu-ns/call", true},
		},
	},
	{
		file: "slopes-keys", title: "Keys of one transaction: processor time of all", x: "keys",
		xTitle: "keys", yTitle: "ns",
		series: []series{
			{"changed, at three replicas", "slopes.txt", "Calls/transaction", "cpu-ns/key", true},
			{"changed and told to a subscriber", "slopes.txt", "Subscribed", "cpu-ns/key", true},
			{"unsubscribed", "slopes.txt", "Subscribed", "cpu-ns/unsubscribe", true},
		},
	},
}
