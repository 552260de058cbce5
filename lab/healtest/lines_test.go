//go:build linux

package healtest_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Lines of the log from WARN that an operator reads about a fault: one for each fact, at each
// member that notices it.
const (
	dropped   = "members dropped: the provider does not list them any more"
	divided   = "the cluster is split: running members and this one do not list each other"
	ended     = "this incarnation of the member has ended: it rejoins with a new id"
	storeAway = "the lease store does not answer"

	startedAgain = "rejoining the cluster"
)

// times is how often a member may log a line.
type times struct{ least, most int }

// alarms are the lines from WARN at the members of one side, by what the fault is to it.
var alarms = map[string]map[string]times{
	"the others have crashed":   {dropped: {1, 1}},
	"the other side rejoins":    {dropped: {1, 1}, divided: {0, 1}},
	"this side rejoins":         {dropped: {1, 1}, divided: {0, 1}, ended: {1, 1}},
	"one of the halves rejoins": {dropped: {1, 1}, divided: {0, 1}, ended: {0, 1}},
}

// busy are lines that are about the load of the machine.
var busy = []string{"this process did not run for a while: it was paused, or got no processor",
	"the lease store is slow", "waiting for members", "waiting to be listed",
	"still waiting for components", "no singletons and shards here yet"}

// expected returns the lines of a member, if the fault began when the cluster was up.
func (o outage) expected(c *members, s side, i int) map[string]times {
	role := "the other side rejoins"
	switch {
	case strings.HasPrefix(o.name, "crash"):
		role = "the others have crashed"
	case 2*len(s.others) == o.n:
		role = "one of the halves rejoins"
	case slices.Contains(s.others, i) == (2*len(s.others) < o.n): // the smaller side, host or not
		role = "this side rejoins"
	}
	want := maps.Clone(alarms[role])
	if o.begin < 10*time.Second { // its first incarnation may not have been ready yet
		want[startedAgain] = times{0, 1}
	}
	if slices.Contains(c.silenced, i) {
		want[storeAway] = times{1, 1}
	}
	return want
}

// msgLine matches a line from WARN.
var msgLine = regexp.MustCompile(`level=(?:WARN|ERROR) msg=("(?:[^"\\]|\\.)*"|\S+)`)

// fewLines checks the lines from WARN of all members. While they start, and in the sample, which
// runs along with other tests, members may be dropped because they get no processor: then it checks
// only which lines there are.
func (c *members) fewLines(o outage, s side) (ok bool) {
	ok = true
	for i, p := range c.live {
		if p == nil {
			continue
		}
		text, err := os.ReadFile(p.log)
		if err != nil {
			c.t.Fatal(err)
		}
		got := map[string]int{}
		for _, m := range msgLine.FindAllStringSubmatch(string(text), -1) {
			got[strings.Trim(m[1], `"`)]++
		}
		want := o.expected(c, s, i)
		for line, n := range got {
			if _, known := want[line]; !known && !slices.Contains(busy, line) {
				c.t.Errorf("%s logs %d times from WARN: %s", p.Name, n, line)
				ok = false
			}
		}
		if *runs == 0 || o.begin < 10*time.Second {
			continue
		}
		for line, n := range want {
			if got[line] < n.least || got[line] > n.most {
				c.t.Errorf("%s logs %d times, want %s: %s", p.Name, got[line],
					fmt.Sprintf("%d to %d", n.least, n.most), line)
				ok = false
			}
		}
	}
	return ok
}
