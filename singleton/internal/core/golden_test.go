package core_test

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/scenarios"
	"github.com/concord-go/concord/singleton/internal/core"
)

// TestGolden plays the stories of testdata. A line that begins with > is an event of member a; a
// "+" and a duration before it let time pass. The effects of the machine or the route follow.
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/*.txt", func(t *testing.T, path, text string) string {
		return play(t, text, strings.HasPrefix(filepath.Base(path), "route"))
	})
}

func play(t *testing.T, story string, route bool) string {
	var out strings.Builder
	now := time.Unix(1000, 0)
	m := core.New(config(story))
	r := core.NewRoute(time.Second)
	for lines := bufio.NewScanner(strings.NewReader(story)); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "\t"): // previous output
			continue
		case !strings.HasPrefix(line, "> "):
			fmt.Fprintln(&out, line)
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line[2:])
		if d, ok := strings.CutPrefix(words[0], "+"); ok {
			wait, err := time.ParseDuration(d)
			require.NoError(t, err)
			now, words = now.Add(wait), words[1:]
		}
		var effects []core.Effect
		if ev := parse(t, words); route {
			effects = r.Step(now, ev)
		} else {
			effects = m.Step(now, ev)
		}
		for _, e := range effects {
			fmt.Fprintf(&out, "\t%s%s\n", strings.TrimPrefix(fmt.Sprintf("%T", e), "core."),
				show(e))
		}
		if !route {
			fmt.Fprintf(&out, "\tis %v\n", m.State())
		}
	}
	return out.String()
}

// config returns the configuration of a story, which may begin with a line "settle 2s" or "members
// 2".
func config(story string) core.Config {
	c := core.Config{
		HandOver: 10 * time.Second, Hurry: time.Second, Grace: 2 * time.Second,
		BackOff: 100 * time.Millisecond, MaxBackOff: 10 * time.Second, Tries: 3,
		AnnouncedFor: 10 * time.Second, Repeat: time.Second, Return: 10 * time.Second,
		MaxReturn: time.Minute, Doubt: 15 * time.Second,
	}
	var settle string
	if n, _ := fmt.Sscanf(story, "settle %s", &settle); n == 1 {
		c.Settle, _ = time.ParseDuration(settle)
	}
	_, _ = fmt.Sscanf(story, "members %d", &c.MinMembers)
	return c
}

func show(e core.Effect) string {
	s := strings.NewReplacer("{", " ", "}", "").Replace(fmt.Sprintf("%+v", e))
	return strings.NewReplacer(" Incarnation:1 Address:", "", " Token:0", "",
		" Failing:false", "", " Claims:false",
		"", "ID:", "", ": ", ":").Replace(strings.TrimRight(s, " "))
}

func named(name string) core.Member { return core.Member{ID: name, Incarnation: 1} }

func parse(t *testing.T, words []string) core.Event {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(words[i], 10, 64)
		require.NoError(t, err)
		return n
	}
	switch words[0] {
	case "view": // hosts, oldest first; after a "/" by preference
		v := core.View{Self: named("a")}
		to := &v.Hosts
		for _, w := range words[1:] {
			if w == "/" {
				to = &v.Preferred
				continue
			}
			*to = append(*to, named(w))
		}
		return v
	case "removed":
		return core.View{Self: named("a"), Removed: true}
	case "leaving":
		return core.Leaving{Member: named(words[1])}
	case "tick":
		return core.Wake{}
	case "held": // attempt, token
		return core.Held{Attempt: number(1), Token: number(2)}
	case "failed":
		return core.Failed{Attempt: number(1)}
	case "taken":
		return core.Failed{Attempt: number(1), Taken: true}
	case "refused":
		return core.Failed{Attempt: number(1), Final: true}
	case "lost":
		return core.Lost{Token: number(1)}
	case "silent": // lost, because the store is silent
		return core.Lost{Token: number(1), Silent: true}
	case "shut":
		return core.Gate{}
	case "open":
		return core.Gate{Open: true}
	case "runs": // from, sequence, token
		return core.Announcement{From: named(words[1]), Seq: number(2), Token: number(3)}
	case "declines": // from, sequence, seconds
		return core.Announcement{From: named(words[1]), Seq: number(2),
			For: time.Duration(number(3)) * time.Second}
	case "failing": // from, sequence, seconds
		return core.Announcement{From: named(words[1]), Seq: number(2),
			For: time.Duration(number(3)) * time.Second, Failing: true}
	case "claims": // from, sequence, seconds
		return core.Announcement{From: named(words[1]), Seq: number(2),
			For: time.Duration(number(3)) * time.Second, Claims: true}
	case "unreached": // probe
		return core.Probed{Probe: number(1)}
	case "nobody's": // probe
		return core.Probed{Probe: number(1), Reached: true}
	case "another's": // probe
		return core.Probed{Probe: number(1), Reached: true, Taken: true}
	case "gone":
		return core.Gone{Run: number(1)}
	case "ran": // seconds, and is gone
		return core.Gone{Run: number(1), Ran: time.Duration(number(2)) * time.Second}
	case "broken":
		return core.Broken{Run: number(1)}
	case "released":
		return core.Released{Token: number(1), Certain: true}
	case "unreleased":
		return core.Released{Token: number(1)}
	case "free":
		return core.Free{}
	case "close":
		return core.Close{}
	case "host": // from, round, token
		return core.Host{From: named(words[1]), Round: number(2), Token: number(3)}
	case "paused": // from, token
		return core.Paused{From: named(words[1]), Token: number(2)}
	case "killed": // from, token
		return core.Paused{From: named(words[1]), Token: number(2), Lost: true}
	}
	t.Fatalf("no such event: %v", words)
	return nil
}
