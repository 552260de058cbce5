package membership

import (
	"testing"
	"time"

	"github.com/concord-go/concord/testkit/sim"
)

var seeds = sim.Flags(usualSeeds)

// cutsOfOne are splits of small clusters, on a provider with rounds of half a second, that must heal soon.
func TestSplit_Heals(t *testing.T) {
	for name, c := range map[string]struct {
		members int
		acts    [][]any // verb and words
		within  time.Duration
	}{
		"one of three":        {3, [][]any{{"split", "aabz", "6s"}}, 8 * time.Second},
		"one of three, 30s":   {3, [][]any{{"split", "aabz", "30s"}}, 8 * time.Second},
		"halves of two":       {2, [][]any{{"split", "abz", "6s"}}, 8 * time.Second},
		"halves of four":      {4, [][]any{{"split", "aabbz", "6s"}}, 20 * time.Second},
		"two, two and one":    {5, [][]any{{"split", "aabbcz", "6s"}}, 20 * time.Second},
		"each alone":          {3, [][]any{{"split", "abcz", "6s"}}, 20 * time.Second},
		"one link":            {3, [][]any{{"link", 0, 1, "both", "6s"}}, 8 * time.Second},
		"one way":             {3, [][]any{{"link", 0, 1, "one", "6s"}}, 8 * time.Second},
		"one frozen":          {3, [][]any{{"freeze", 0, "6s"}}, 8 * time.Second},
		"two of three frozen": {3, [][]any{{"freeze", 0, "6s"}, {"freeze", 1, "6s"}}, 20 * time.Second},
		"all frozen in turn":  {3, [][]any{{"freeze", 0, "6s"}, {"freeze", 1, "7s"}, {"freeze", 2, "8s"}}, 20 * time.Second},
		"one drops another":   {3, [][]any{{"drop", 0, 1, "600ms"}}, 8 * time.Second},
		"a ring of drops":     {3, [][]any{{"drop", 0, 1, "600ms"}, {"drop", 1, 2, "600ms"}, {"drop", 2, 0, "600ms"}}, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, sim.Seeds{First: 1, Count: 3}, func(s *sim.World) {
				w := newWorld(s, c.members)
				w.start(c.members)
				last := time.Duration(0)
				for _, a := range c.acts {
					w.Act(20*time.Second, a[0].(string), a[1:]...)
					d, _ := time.ParseDuration(a[len(a)-1].(string))
					last = max(last, 20*time.Second+d)
				}
				w.Until(19 * time.Second)
				if !w.oneView() {
					w.Fail("not one view at the start: %s", w.told())
				}
				w.Until(last - 19*time.Second)
				w.Eventually(c.within, "one view everywhere", w.oneView)
			})
		})
	}
}
