package core_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/scenarios"
)

// goldenConfig has round numbers: validity lasts 11s from the send time, stop-by is at 9s, the
// warning at 7s1/3, and a record may be taken 13s after it was first seen.
var goldenConfig = core.Config{
	Owner: "me", Nonce: "mine", TTL: 12 * time.Second, Renew: 4 * time.Second,
	Operation: time.Second,
	Retry:     2 * time.Second, Drain: 2 * time.Second, Margin: 880 * time.Millisecond,
	RateError: 0.01,
	Jitter:    func() float64 { return 0.5 },
}

// TestGolden plays the scenarios in testdata. Each line is a time and an event, a comment, or
// "wall" with a clock jump. The indented lines below it are the effects, and the time at which the
// machine wants to wake. A first line "shared", "forever", "fair" or "keeper", or two with a plus
// sign between them, sets that of the configuration; "observer" plays an Observer of the session
// "dead".
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/*.txt", func(t *testing.T, _, text string) string {
		return playScript(t, text)
	})
}

func playScript(t *testing.T, script string) string {
	cfg := goldenConfig
	first, _, _ := strings.Cut(script, "\n")
	options := strings.Split(first, "+")
	with := func(option string) bool { return slices.Contains(options, option) }
	cfg.Shared, cfg.Forever, cfg.Fair, cfg.Keeper = with("shared"), with("forever"), with("fair"),
		with("keeper")
	var m interface {
		Step(core.Reading, core.Event) []core.Effect
		Wake() (time.Duration, bool)
	} = core.New(cfg)
	if strings.HasPrefix(script, "observer\n") {
		cfg.Common = &core.Common{}
		m = core.NewObserver(cfg, "dead")
	}
	var out strings.Builder
	var wall time.Duration
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "    ") {
			continue
		}
		fmt.Fprintln(&out, line)
		f := strings.Fields(line)
		if len(f) < 2 || line[0] == '#' {
			continue
		}
		at := duration(t, f[0])
		if f[1] == "wall" {
			wall += duration(t, f[2])
			continue
		}
		now := core.Reading{Mono: at, Boot: at, Wall: at + wall}
		for _, e := range m.Step(now, parse(t, f[1:])) {
			fmt.Fprintf(&out, "    %s\n", show(e))
		}
		if wake, ok := m.Wake(); ok {
			fmt.Fprintf(&out, "    wake %v\n", wake)
		}
	}
	return out.String()
}

func parse(t *testing.T, f []string) core.Event {
	arg := func(i int) uint64 {
		n, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			t.Fatal(f, err)
		}
		return n
	}
	token := func(i int) core.Token { return core.Token(arg(i)) }
	switch f[0] {
	case "acquire":
		ev := core.Acquire{ID: arg(1), Wait: len(f) > 2}
		if len(f) > 3 { // wait VERSION TOKEN
			ev.From = core.Blank{Version: core.Version(f[3]), Token: token(4)}
		}
		return ev
	case "cancel":
		return core.Cancel{ID: arg(1)}
	case "release":
		return core.Release{ID: arg(1), Token: token(2)}
	case "close":
		return core.Close{}
	case "abandon":
		return core.Abandon{Token: token(1)}
	case "look":
		return core.Look{On: f[1] == "on"}
	case "unwatched":
		return core.Unwatched{}
	case "tick":
		return core.Tick{}
	case "changed":
		return core.Changed{Record: record(t, f[1:])}
	case "loaded":
		if f[2] == "error" {
			return core.Loaded{Op: arg(1), Err: errTest}
		}
		return core.Loaded{Op: arg(1), Version: core.Version(f[2]), Record: record(t, f[3:])}
	case "session":
		if f[2] == "error" {
			return core.SessionLoaded{Op: arg(1), Err: errTest}
		}
		return core.SessionLoaded{Op: arg(1), Version: core.Version(f[2]), Record: record(t, f[3:])}
	case "nosession": // and the token that the next record will exceed
		if len(f) > 2 {
			return core.SessionLoaded{Op: arg(1), Record: core.Record{Token: token(2)}}
		}
		return core.SessionLoaded{Op: arg(1)}
	case "backed": // token, send time
		sent := duration(t, f[2])
		return core.Backed{Token: token(1), Validity: core.Validity{
			Sent:      core.Reading{Mono: sent, Boot: sent, Wall: sent},
			StopAfter: 9 * time.Second, ValidFor: 11 * time.Second}}
	case "unbacked":
		why := map[string]core.Cause{"expired": core.Expired, "deleted": core.RecordDeleted}[f[2]]
		return core.Unbacked{Token: token(1), Why: why, Err: errTest}
	case "unbackable":
		return core.Unbackable{Err: errTest}
	case "gone":
		return core.Gone{Token: token(1), Outcome: core.Doubt}
	case "enqueued": // operation, then nonce and beat of each place ahead
		if len(f) > 2 && f[2] == "error" {
			return core.Enqueued{Op: arg(1), Err: errTest}
		}
		var ahead []core.Place
		for i := 2; i < len(f); i += 2 {
			ahead = append(ahead, core.Place{Nonce: f[i], Beat: arg(i + 1), TTL: 12 * time.Second})
		}
		return core.Enqueued{Op: arg(1), Ahead: ahead}
	case "left":
		if len(f) > 2 {
			return core.Left{Op: arg(1), Err: errTest}
		}
		return core.Left{Op: arg(1)}
	case "absent":
		return core.Loaded{Op: arg(1)}
	case "swapped", "ended":
		status, failed := map[string]core.Status{"unknown": core.Unknown,
			"conflicted": core.Conflicted, "refused": core.Refused}[f[2]]
		switch {
		case f[0] == "ended" && failed:
			return core.SessionEnded{Op: arg(1), Status: status, Err: errTest}
		case f[0] == "ended":
			return core.SessionEnded{Op: arg(1), Status: core.Written, Version: core.Version(f[2])}
		case failed:
			return core.Swapped{Op: arg(1), Status: status, Err: errTest}
		}
		written := core.Swapped{Op: arg(1), Status: core.Written, Version: core.Version(f[2])}
		if len(f) > 3 {
			written.Token = token(3) // assigned by the store
		}
		return written
	}
	t.Fatal("unknown event", f)
	return nil
}

// record parses "blank TOKEN", "mine TOKEN ATTEMPT [SESSION]", "NAME TOKEN [TTL]", "NAME TOKEN
// forever", "NAME TOKEN renewed ATTEMPT", or "NAME TOKEN through SESSION".
func record(t *testing.T, f []string) core.Record {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			t.Fatal(f, err)
		}
		return n
	}
	token := core.Token(number(1))
	r := core.Record{Owner: f[0], Nonce: f[0], Token: token, Attempt: 1, TTL: 12 * time.Second}
	switch {
	case f[0] == "blank":
		return core.Record{Token: token}
	case f[0] == "mine":
		r.Attempt = number(2)
		if len(f) > 3 {
			r.Session = core.Token(number(3))
		}
	case len(f) > 2 && f[2] == "forever":
		r.Forever = true
	case len(f) > 3 && f[2] == "renewed":
		r.Attempt = number(3)
	case len(f) > 3:
		r.Session = core.Token(number(3))
	case len(f) > 2:
		r.TTL = duration(t, f[2])
	}
	return r
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func show(e core.Effect) string {
	switch e := e.(type) {
	case core.Failing:
		return fmt.Sprintf("failing (%v)", e.Err)
	case core.Load:
		return fmt.Sprintf("load %d", e.Op)
	case core.Swap:
		if e.Next.Nonce == "" {
			return fmt.Sprintf("swap %d on %q: blank, token %d", e.Op, e.Old, e.Next.Token)
		}
		s := fmt.Sprintf("swap %d on %q: token %d, attempt %d", e.Op, e.Old, e.Next.Token,
			e.Next.Attempt)
		if e.Next.Session != 0 {
			s += fmt.Sprintf(", session %d", e.Next.Session)
		}
		if e.Next.Forever {
			s += ", forever"
		}
		return s
	case core.LoadSession:
		return fmt.Sprintf("load %d: session of %s", e.Op, e.Nonce)
	case core.EndSession:
		return fmt.Sprintf("end %d: session of %s on %q, token %d", e.Op, e.Nonce, e.Old,
			e.Next.Token)
	case core.Enqueue:
		return fmt.Sprintf("enqueue %d: %s, beat %d", e.Op, e.Place.Nonce, e.Place.Beat)
	case core.Leave:
		s := fmt.Sprintf("leave %d:", e.Op)
		for _, p := range e.Places {
			s += fmt.Sprintf(" %s up to beat %d", p.Nonce, p.Beat)
		}
		return s
	case core.Begin:
		return fmt.Sprintf("begin token %d, valid until %v", e.Token,
			e.Validity.Sent.Mono+e.Validity.ValidFor)
	case core.Extend:
		return fmt.Sprintf("extend token %d, valid until %v", e.Token,
			e.Validity.Sent.Mono+e.Validity.ValidFor)
	case core.Warn:
		return fmt.Sprintf("warn token %d, %v remain", e.Token, e.Remaining)
	case core.End:
		return strings.TrimSpace(fmt.Sprintf("end token %d: %v %s", e.Token, e.Why, e.Holder.Owner))
	case core.Drained:
		return fmt.Sprintf("drained token %d", e.Token)
	case core.Answer:
		s := fmt.Sprintf("answer %d: %v", e.ID, e.Outcome)
		if e.Outcome == core.Taken {
			s += fmt.Sprintf(" by %s, %v left", e.Holder.Owner, e.Left)
		}
		if e.Blank.Version != "" {
			s += fmt.Sprintf(", left %s blank with token %d", e.Blank.Version, e.Blank.Token)
		}
		if e.Err != nil {
			s += fmt.Sprintf(" (%v)", e.Err)
		}
		return s
	case core.Follow:
		return fmt.Sprintf("follow %s %v", e.Nonce, e.On)
	case core.Watch:
		return fmt.Sprintf("watch %v", e.On)
	}
	return fmt.Sprintf("%T", e)
}
