package roster

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func ids(members []Member) string {
	var out []string
	for _, m := range members {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

func TestList(t *testing.T) {
	a := Member{ID: "a", Host: "h", Port: 1}
	b := Member{ID: "b", Host: "h", Port: 2}
	c := Member{ID: "c", Host: "h", Port: 2, Order: 1} // b's next incarnation
	start := time.Unix(1000, 0)
	type step struct {
		name    string
		after   time.Duration // since start
		lose    bool
		entries []Member // nil: no new report
		want    string
	}
	for name, steps := range map[string][]step{
		"what is missing is dropped at once": {
			{"both", 0, false, []Member{a, b}, "a b"},
			{"one", 1, false, []Member{a}, "a"},
		},
		"the latest at an address counts": {
			{"in order", 0, false, []Member{a, b, c}, "a c"},
			{"whatever the order", 0, false, []Member{c, b, a}, "a c"},
			{"no way back", 1, false, []Member{a, c}, "a c"},
		},
		"a lost session keeps the missing for the grace": {
			{"both", 0, false, []Member{a, b}, "a b"},
			{"lost", time.Second, true, nil, "a b"},
			{"back, alone", 9 * time.Second, false, []Member{a}, "a b"},
			{"still", 13 * time.Second, false, []Member{a}, "a b"},
			{"over", 14 * time.Second, false, nil, "a"},
		},
		"who comes back in time stays": {
			{"both", 0, false, []Member{a, b}, "a b"},
			{"lost", time.Second, true, nil, "a b"},
			{"back, alone", 9 * time.Second, false, []Member{a}, "a b"},
			{"there", 10 * time.Second, false, []Member{a, b}, "a b"},
			{"over", 15 * time.Second, false, nil, "a b"},
			{"gone", 16 * time.Second, false, []Member{a}, "a"},
		},
		"another incarnation replaces the missing": {
			{"both", 0, false, []Member{a, b}, "a b"},
			{"lost", time.Second, true, nil, "a b"},
			{"back", 2 * time.Second, false, []Member{a, c}, "a c"},
		},
		"the first session has no grace": {
			{"lost", 0, true, nil, ""},
			{"back", 1, false, []Member{a}, "a"},
		},
	} {
		l := list{grace: 5 * time.Second}
		for _, s := range steps {
			var got []Member
			now := start.Add(s.after)
			if s.lose {
				l.lose()
			}
			if s.entries == nil {
				got = l.at(now)
			} else {
				got = l.hear(now, slices.Clone(s.entries))
			}
			if ids(got) != s.want {
				t.Errorf("%s: %s: %q, want %q", name, s.name, ids(got), s.want)
			}
		}
	}
}
