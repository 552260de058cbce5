package core_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/scenarios"
	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// goldenConfig has one shard and round numbers.
var goldenConfig = core.Config{
	Shards: 1, Beat: time.Second, Settle: 3 * time.Second, Fit: 5 * time.Second,
	Repeat: 500 * ms, FlushTimeout: time.Second, HandOff: 10 * time.Second,
	Patience: 5 * time.Second, Retry: time.Second, Orphan: 4 * time.Second,
	Resend: time.Second, MaxResend: 4 * time.Second, Handled: 100,
	Buffer: 16, BufferBytes: 1 << 20,
}

// TestGolden plays the scenarios in testdata/golden: the regions of members, coordinators, and the
// messages between them. The only shard is not named. A line is a comment, "after" with the
// scenario that was played before, or a time and one of
//
//	view a b c         each core, without those at members that are not listed, sees this view
//	coordinator c/20   a coordinator begins at c, with the token 20; it sees the last view
//	wake               each core whose wake is due gets it
//	deliver WORDS      messages that were sent before, and whose text has all these words, arrive
//	lose WORDS         the same are lost
//	CORE EVENT         an event of one core: the region at a is a, the coordinator at c is c/20
//
// A message of a to b has the words a> and >b too. The indented lines are recorded: the cores that
// the line above concerns, and their effects.
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/golden/*.txt", func(t *testing.T, path, _ string) string {
		return (&golden{t: t}).play(path)
	})
}

// golden is the world of one scenario.
type golden struct {
	t     *testing.T
	now   time.Time
	view  []core.Member
	cast  []actor
	post  []letter // on their way
	table []core.Entry
	out   strings.Builder
}

type actor struct {
	name string
	at   core.Member
	core interface {
		Step(time.Time, core.Event) []core.Effect
		NextWake() time.Time
	}
	*lanes
}

// lanes are those of the only shard at one member.
type lanes struct {
	in  lane.In
	out lane.Out
}

type letter struct {
	from, to core.Member
	message  core.Message
}

func (l letter) String() string {
	return fmt.Sprintf("%s to %s: %s", l.from.ID, l.to.ID, showMessage(l.message))
}

// play plays a scenario and returns its record.
func (g *golden) play(path string) string {
	script, err := os.ReadFile(path)
	require.NoError(g.t, err)
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, " ") {
			continue
		}
		g.print(line)
		words := strings.Fields(line)
		switch {
		case len(words) < 2 || words[0] == "#":
		case words[0] == "after":
			before := g.out.String()
			g.play(filepath.Join(filepath.Dir(path), words[1]+".txt"))
			g.out.Reset()
			g.print(strings.TrimSuffix(before, "\n"))
		default:
			at, err := time.ParseDuration(words[0])
			require.NoError(g.t, err, line)
			now := time.Unix(1000, 0).Add(at)
			require.False(g.t, now.Before(g.now), "%s: the time goes back", line)
			g.now = now
			g.line(words[1], words[2:])
		}
	}
	return g.out.String()
}

func (g *golden) print(line string) { fmt.Fprintln(&g.out, line) }

func (g *golden) line(what string, words []string) {
	switch what {
	case "view":
		g.view = members(words)
		g.cast = slices.DeleteFunc(g.cast, func(a actor) bool {
			return !slices.Contains(g.view, a.at)
		})
		for _, m := range g.view {
			if !slices.ContainsFunc(g.cast, func(a actor) bool { return a.name == m.ID }) {
				g.cast = append(g.cast, actor{m.ID, m, core.NewRegion(goldenConfig),
					&lanes{out: lane.NewOut(lane.NewRoom(16, 1<<20))}})
			}
		}
		for _, a := range g.cast {
			g.step(a, core.View{Self: a.at, Members: g.view}, a.name)
		}
	case "coordinator":
		id, token, _ := strings.Cut(words[0], "/")
		a := actor{words[0], members([]string{id})[0],
			core.NewAllocation(goldenConfig, numbers(token)[0], nil), nil}
		g.cast = append(g.cast, a)
		g.step(a, core.View{Self: a.at, Members: g.view}, "")
	case "wake":
		for _, a := range g.cast {
			if at := a.core.NextWake(); !at.IsZero() && !at.After(g.now) {
				g.step(a, core.Wake{}, a.name)
			}
		}
	case "deliver", "lose":
		g.deliver(words, what == "deliver")
	default:
		i := slices.IndexFunc(g.cast, func(a actor) bool { return a.name == what })
		require.GreaterOrEqual(g.t, i, 0, "no core %s", what)
		if words[0] == "send" {
			g.send(g.cast[i], core.Body{ID: words[1], Size: 1})
			return
		}
		g.step(g.cast[i], g.event(words), "")
	}
}

// deliver has the messages with all these words arrive, in the order in which they were sent.
func (g *golden) deliver(words []string, arrive bool) {
	var taken, left []letter
	for _, l := range g.post {
		text := append(strings.Fields(strings.NewReplacer(":", "", ",", "", ";", "").Replace(
			showMessage(l.message))), l.from.ID+">", ">"+l.to.ID)
		lacks := func(w string) bool { return !slices.Contains(text, w) }
		if slices.ContainsFunc(words, lacks) {
			left = append(left, l)
		} else {
			taken = append(taken, l)
		}
	}
	require.NotEmpty(g.t, taken, "no message has %s", words)
	g.post = left
	for _, l := range taken {
		report, isReport := l.message.(core.Report)
		for _, a := range g.cast {
			switch _, coordinates := a.core.(*core.Allocation); {
			case !arrive, a.at != l.to:
			case coordinates && isReport:
				g.step(a, core.Received{From: l.from, Message: l.message}, a.name+", "+l.String())
			case !coordinates && (!isReport || report.Ended()):
				g.hear(a, l)
			}
		}
	}
}

// hear has a message arrive at a region, or at the lane of the shard.
func (g *golden) hear(a actor, l letter) {
	d, ok := l.message.(core.Data)
	if !ok {
		g.step(a, core.Received{From: l.from, Message: l.message}, l.String())
		return
	}
	v := a.in.Take(l.from, d)
	if v == lane.Strange {
		g.step(a, core.Received{From: l.from, Message: d}, l.String())
		return
	}
	g.print("    " + l.String())
	g.print(fmt.Sprintf("        the entity gets %s under %d", d.Body.ID, d.Token))
	if v == lane.Awaited {
		d.Body = core.Body{}
		g.step(a, core.Arrived{From: l.from, Data: d}, below)
	}
}

// send has a process send a message: it passes at once, or waits.
func (g *golden) send(a actor, b core.Body) {
	if a.out.Len() == 0 && g.pass(a, b, "    ") {
		return
	}
	if first, _ := a.out.Wait(b); first {
		g.step(a, core.Waits{}, "")
	}
}

// pass sends a message to the known tenure, or returns false if it must wait.
func (g *golden) pass(a actor, b core.Body, indent string) bool {
	t, ok := a.out.Next(b.Size)
	if ok {
		l := letter{a.at, t.To, core.Data{Token: t.Token, Number: t.Number, Body: b}}
		g.post = append(g.post, l)
		g.print(indent + "to " + t.To.ID + ": " + showMessage(l.message))
	} else if ok = a.out.Token() != 0; ok {
		g.print(fmt.Sprintf("%sthe entity gets %s under %d", indent, b.ID, a.out.Token()))
	}
	return ok
}

// open carries out an effect: what waits passes.
func (g *golden) open(a actor, e core.Open, indent string) {
	var f *lane.Flow
	if e.Host != a.at {
		f = lane.NewFlow(1 << 20)
	}
	a.out.Open(e.Host, e.Token, f)
	for b, ok := a.out.First(); ok && g.pass(a, b, indent); b, ok = a.out.First() {
		a.out.Pop()
	}
}

// below is the headline of effects that follow those of the last step.
const below = "below"

// step steps a core and records its effects, below a headline unless that is empty.
func (g *golden) step(a actor, ev core.Event, headline string) {
	indent := "    "
	effects := slices.Clone(a.core.Step(g.now, ev))
	if headline == below {
		indent += "    "
	} else if headline != "" && len(effects) > 0 {
		g.print(indent + headline)
		indent += "    "
	} else if _, arrived := ev.(core.Received); arrived {
		g.print(indent + headline)
	}
	for i := 0; i < len(effects); i++ {
		switch e := effects[i].(type) {
		case core.Tell:
			if flush, ok := e.Message.(core.Flush); ok {
				flush.Number = a.out.Last(flush.Token)
				e.Message = flush
			}
			g.post = append(g.post, letter{a.at, e.To, e.Message})
			to, text := e.To.ID, showMessage(e.Message)
			for ; i+1 < len(effects); i++ { // the same to others
				next, ok := effects[i+1].(core.Tell)
				if !ok || showMessage(next.Message) != text {
					break
				}
				g.post = append(g.post, letter{a.at, next.To, next.Message})
				to += " " + next.To.ID
			}
			g.print(indent + "to " + to + ": " + text)
		case core.Admit:
			g.print(indent + showEffect(e))
			if counted, ok := a.in.Admit(e); ok {
				defer g.step(a, counted, "")
			}
		case core.Open:
			g.print(indent + showEffect(e))
			g.open(a, e, indent)
		case core.Shut:
			g.print(indent + showEffect(e))
			if a.out.Shut(); a.out.Len() > 0 {
				defer g.step(a, core.Waits{}, "")
			}
		case core.Assigned:
			g.table = append(g.table, e.Entry)
			g.print(indent + "assign" + showEntries([]core.Entry{e.Entry}))
		default:
			g.print(indent + showEffect(e))
		}
	}
}

// event parses an event of one core; numbers are in the order of the fields.
func (g *golden) event(words []string) core.Event {
	n := numbers(words...)
	switch words[0] {
	case "view": // of this core alone
		list := members(words[1:])
		return core.View{Self: list[0], Members: list}
	case "knows": // what the replicated table has
		return core.Known{Entries: g.table}
	case "move":
		return core.Move{To: members(words[len(words)-1:])[0]}
	case "held":
		return core.Held{Attempt: n[0], Token: n[1]}
	case "taken":
		return core.NotHeld{Attempt: n[0], Taken: true}
	case "lost":
		return core.Lost{Token: n[0]}
	case "ended":
		return core.Ended{Token: n[0]}
	case "released":
		return core.Released{Token: n[0], Certain: true, Blank: core.Blank{
			Version: words[len(words)-1], Token: n[0]}}
	case "looked":
		return core.Looked{Other: words[1] == "other"}
	case "store":
		return core.Store{Failing: words[1] == "fails"}
	case "leave":
		return core.Leave{}
	case "left":
		return core.Left{}
	}
	require.Fail(g.t, "unknown event", words)
	return nil
}

func members(ids []string) (out []core.Member) {
	for _, id := range ids {
		out = append(out, core.Member{ID: id, Incarnation: 1})
	}
	return out
}

// numbers returns the words that are numbers.
func numbers(words ...string) (out []uint64) {
	for _, w := range words {
		var n uint64
		if _, err := fmt.Sscanf(w, "%d", &n); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func showEffect(e core.Effect) string {
	switch e := e.(type) {
	case core.Acquire:
		return fmt.Sprintf("acquire, attempt %d%s", e.Attempt, showBlank(e.Blank))
	case core.Start:
		return fmt.Sprintf("start under %d", e.Token)
	case core.Admit:
		switch {
		case e.Count:
			return fmt.Sprintf("count the messages under %d", e.Token)
		case e.Token == 0:
			return "admit nothing"
		}
		return fmt.Sprintf("admit under %d", e.Token)
	case core.Stop:
		return fmt.Sprintf("stop under %d", e.Token)
	case core.StopNow:
		return fmt.Sprintf("stop now under %d", e.Token)
	case core.Release:
		return fmt.Sprintf("release %d", e.Token)
	case core.Open:
		return fmt.Sprintf("send to %s under %d", e.Host.ID, e.Token)
	case core.Shut:
		return "send nothing"
	case core.Drop:
		return fmt.Sprintf("drop %s", e.Body.ID)
	case core.Orphaned:
		return fmt.Sprintf("no answers of %d", e.Token)
	case core.Look:
		return "look at the coordinator's lease"
	}
	return fmt.Sprintf("%T", e)
}

func showMessage(m core.Message) string {
	switch m := m.(type) {
	case core.Table:
		s := fmt.Sprintf("table %d of %d%s", m.Beat, m.Epoch, showEntries(m.Entries))
		if m.Over {
			s += ", all leave"
		}
		return s
	case core.Report:
		return showReport(m)
	case core.AskFree:
		return "ask free" + showEntries([]core.Entry{m.Entry})
	case core.Free:
		return fmt.Sprintf("free at %s%s", showVersion(m.Version), showBlank(m.Blank))
	case core.Active:
		return fmt.Sprintf("active under %d", m.Token)
	case core.Where:
		return "where?"
	case core.Pause:
		return fmt.Sprintf("pause %d", m.Token)
	case core.Flush:
		return fmt.Sprintf("flushed %d after %d messages", m.Token, m.Number)
	case core.Inactive:
		return fmt.Sprintf("inactive %d", m.Token)
	case core.NotHere:
		return fmt.Sprintf("not here: %d", m.Token)
	case core.Data:
		return fmt.Sprintf("message %s, %d under %d", m.Body.ID, m.Number, m.Token)
	}
	return fmt.Sprintf("%T", m)
}

func showReport(m core.Report) string {
	if m.Ended() {
		return "farewell"
	}
	s := fmt.Sprintf("report %d of %d", m.Beat, m.Epoch)
	for _, has := range m.Active {
		s += fmt.Sprintf(", has it under %d", has.Token)
	}
	if m.Active == nil && m.Held != 0 {
		s += ", has what it had"
	}
	if m.Leaving {
		s += ", leaving"
	}
	if m.Failing {
		s += ", store fails"
	}
	s += [...]string{"", ", memory unproven", ", memory fails"}[m.Memory]
	return s + showEntries(m.Entries)
}

func showEntries(entries []core.Entry) (s string) {
	for _, e := range entries {
		s += fmt.Sprintf("; %s home %s", showVersion(e.Version), e.Home.ID)
		for _, m := range e.Before {
			s += ", before " + m.ID
		}
	}
	return s
}

func showVersion(v core.Version) string { return fmt.Sprintf("%d.%d", v.Epoch, v.N) }

func showBlank(b core.Blank) string {
	if b.Version == "" {
		return ""
	}
	return ", left as " + b.Version
}
