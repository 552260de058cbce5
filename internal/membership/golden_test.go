package membership

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
)

// TestGolden plays the scenarios in testdata/golden: the cores of some members, and the messages
// between them. A line is a comment, "after" with the scenario that was played before, or a time
// and one of
//
//	start a              a process begins at the address a; the provider's id of it is a
//	start a2 at a        the same, where the id is a2
//	stop a               the process with this id ends
//	list a b c           the provider lists these ids, at every process that is running
//	ID list a b          the provider lists these ids at this process
//	ID leave             the member leaves gracefully
//	ID arbiter           the arbiter lease is held in its fragment
//	deliver WORDS        messages that were sent before, and have all these words, arrive
//	lose WORDS           the same are lost
//	cut a / b c          from now on no message passes between these addresses; "cut" heals it
//	run                  until then messages arrive at once, and cores wake when they want to
//
// A message of a to the address b has the words a> and >b too. The indented lines are recorded:
// what the cores do. While they run, hellos that say nothing new are left out, and views that
// another one replaces at once. A stamp is written as the time at which it was chosen.
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/golden/*.txt", func(t *testing.T, path, _ string) string {
		return (&golden{t: t, address: map[string]string{}}).play(path)
	})
}

// golden is the world of one scenario. It begins at time zero.
type golden struct {
	t       *testing.T
	now     time.Duration
	cast    []actorOf
	address map[string]string // by the provider's id
	sides   [][]string        // addresses between which nothing passes
	post    []letter          // on their way
	quiet   bool              // while they run
	ran     []string          // lines of the run
	out     strings.Builder
}

type actorOf struct {
	id string
	*core
}

type letter struct {
	from, to string // id and address
	message  effect // send or name
	by       *core
}

func (l letter) String() string {
	return fmt.Sprintf("%s to %s: %s", l.from, l.to, showMessage(l.message))
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
		fmt.Fprintln(&g.out, line)
		words := strings.Fields(line)
		switch {
		case len(words) < 2 || words[0] == "#":
		case words[0] == "after":
			before := g.out.String()
			g.play(filepath.Join(filepath.Dir(path), words[1]+".txt"))
			g.out.Reset()
			g.out.WriteString(before)
		default:
			at, err := time.ParseDuration(words[0])
			require.NoError(g.t, err, line)
			require.GreaterOrEqual(g.t, at, g.now, "%s: the time goes back", line)
			if words[1] == "run" {
				g.run(at)
			}
			g.now = at
			g.line(words[1], words[2:])
		}
	}
	return g.out.String()
}

func (g *golden) line(what string, words []string) {
	switch what {
	case "run":
	case "start":
		id, address := words[0], words[len(words)-1]
		g.address[id] = address
		g.cast = append(g.cast, actorOf{id, newCore(defaultSettings(), "", address, id,
			uint64(len(g.cast)+1), []byte(fmt.Sprint(len(g.cast))))})
	case "stop":
		g.cast = slices.DeleteFunc(g.cast, func(a actorOf) bool { return a.id == words[0] })
	case "list":
		for _, a := range g.cast {
			g.step(a, g.topology(words), "")
		}
	case "cut":
		g.sides = nil
		for side := range strings.SplitSeq(strings.Join(words, " "), "/") {
			g.sides = append(g.sides, strings.Fields(side))
		}
	case "deliver", "lose":
		g.deliver(words, what == "deliver")
	default:
		i := slices.IndexFunc(g.cast, func(a actorOf) bool { return a.id == what })
		require.GreaterOrEqual(g.t, i, 0, "no process %s", what)
		g.step(g.cast[i], map[string]event{"list": g.topology(words[1:]), "leave": leave{},
			"arbiter": arbiter{true}}[words[0]], "")
	}
}

func (g *golden) topology(ids []string) (t topology) {
	for _, id := range ids {
		t.members = append(t.members, listed{ID: id, Address: g.address[id]})
	}
	return t
}

// run lets time pass: messages arrive, and cores wake.
func (g *golden) run(end time.Duration) {
	g.quiet, g.ran = true, nil
	defer func() {
		g.quiet = false
		for _, l := range g.ran {
			fmt.Fprintln(&g.out, "    "+l)
		}
	}()
	for {
		for len(g.post) > 0 {
			g.deliver(nil, true)
		}
		next := end + 1
		for _, a := range g.cast {
			if at := a.NextWake(); !at.IsZero() {
				next = min(next, max(g.now, at.Sub(time.UnixMilli(0))))
			}
		}
		if next > end {
			return
		}
		g.now = next
		for _, a := range g.cast {
			if at := a.NextWake(); !at.IsZero() && !at.After(g.time()) {
				g.step(a, wake{}, "")
			}
		}
	}
}

func (g *golden) time() time.Time { return time.UnixMilli(0).Add(g.now) }

// passes reports whether no cut is between two addresses.
func (g *golden) passes(from, to string) bool {
	side := func(address string) int {
		return slices.IndexFunc(g.sides, func(side []string) bool {
			return slices.Contains(side, address)
		})
	}
	return side(from) == side(to)
}

// deliver has the messages with all these words arrive, in the order in which they were sent.
func (g *golden) deliver(words []string, arrive bool) {
	var taken, left []letter
	for _, l := range g.post {
		text := append(strings.Fields(strings.ReplaceAll(showMessage(l.message), ",", "")),
			l.from+">", ">"+l.to)
		if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(text, w) }) {
			left = append(left, l)
		} else {
			taken = append(taken, l)
		}
	}
	require.NotEmpty(g.t, taken, "no message has %s", words)
	g.post = left
	for _, l := range taken {
		for _, a := range g.cast {
			if arrive && a.address == l.to && g.passes(g.address[l.from], l.to) {
				g.step(a, l.arrives(), a.id+", "+l.String())
			}
		}
	}
}

func (l letter) arrives() event {
	switch m := l.message.(type) {
	case send:
		return received{member: l.from, from: l.by.incarnation, to: m.to, hello: m.hello}
	case name:
		return named{member: l.from, from: l.by.incarnation, to: m.to, addresses: m.addresses}
	}
	return nil
}

// step steps a core and records its effects, below a headline if there is one.
func (g *golden) step(a actorOf, ev event, headline string) {
	var lines []string
	for _, e := range a.Step(g.time(), ev) {
		switch e := e.(type) {
		case send:
			l := letter{a.id, e.address, e, a.core}
			g.post = append(g.post, l)
			if h := e.hello; !g.quiet || h.yield || h.permit != 0 || h.declined != 0 {
				lines = append(lines, l.String())
			}
		case name:
			g.post = append(g.post, letter{a.id, e.address, e, a.core})
		case asked:
		case dropped:
			if g.quiet {
				continue
			}
			lines = append(lines, a.id+": drops it: "+[...]string{"malformed", "foreign",
				"a stranger", "stale", "duplicate", "its own"}[e.why])
		default:
			lines = append(lines, a.id+": "+showEffect(e))
		}
	}
	if g.quiet {
		for _, l := range lines {
			g.record(g.now.String()+" "+l, a.id)
		}
		return
	}
	indent := "    "
	if headline != "" {
		fmt.Fprintln(&g.out, indent+headline)
		indent += indent
	}
	for _, l := range lines {
		fmt.Fprintln(&g.out, indent+l)
	}
}

// record records a line of the run. A view takes the place of another one of the same moment.
func (g *golden) record(line, id string) {
	if view := g.now.String() + " " + id + ": view"; strings.HasPrefix(line, view) {
		g.ran = slices.DeleteFunc(g.ran, func(l string) bool { return strings.HasPrefix(l, view) })
	}
	g.ran = append(g.ran, line)
}

func showEffect(e effect) string {
	switch e := e.(type) {
	case publish:
		s := "view"
		for _, m := range e.view.Members {
			s += fmt.Sprintf(" %s(%s)", m.ID, showStamp(m.Stamp))
		}
		if e.view.Removed {
			cause := strings.TrimPrefix(e.view.Cause.Error(), ErrRemoved.Error())
			s = "this incarnation ends" + cause
		}
		return s
	case noted:
		return [...]string{inConflict: "in conflict with", split: "the conflict has lasted with",
			agreement: "agrees with", permitGiven: "permits", permitTaken: "steps down for",
			goodbye: "is left by"}[e.what] + " " + e.other.ID
	case divided:
		s := "lost"
		for _, address := range e.lost {
			s += " " + address
		}
		s += "; split from"
		for _, m := range e.others {
			s += " " + m.ID
		}
		return s
	}
	return fmt.Sprintf("%T", e)
}

func showMessage(m effect) string {
	if n, ok := m.(name); ok {
		return "names " + strings.Join(n.addresses, " ")
	}
	h := m.(send).hello
	s := fmt.Sprintf("hello %d, stamp %s", h.sequence, showStamp(h.stamp))
	if h.maxStamp != h.stamp {
		s += ", knows " + showStamp(h.maxStamp)
	}
	for _, f := range []struct {
		on   bool
		text string
	}{
		{h.answer, "asks"}, {!h.listsYou, "does not list"}, {h.droppedYou, "has dropped"},
		{h.yield, "requests a permit"}, {h.permit != 0, fmt.Sprintf("permits %d", h.permit)},
		{h.declined != 0, fmt.Sprintf("declines %d", h.declined)}, {h.leaving, "leaves"},
	} {
		if f.on {
			s += ", " + f.text
		}
	}
	if h.yield || h.permit != 0 {
		s += fmt.Sprintf(", size %d", h.size)
	}
	return s
}

func showStamp(stamp uint64) string {
	if stamp == 0 {
		return "?"
	}
	s := (time.Duration(stamp>>16) * time.Millisecond).String()
	if more := stamp & 0xffff; more > 0 {
		s += fmt.Sprintf("+%d", more)
	}
	return s
}
