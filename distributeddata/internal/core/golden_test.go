package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/scenarios"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// TestGolden plays the scenarios in testdata. A line is a comment or a command; the indented lines
// below a command are its output. Commands, in which a to c are members:
//
//	members a b c      starts members that count each other, and lets them settle; MinMembers is 3
//	update a OP, …     an update at this replica; "update a majority OP" waits for a majority
//	read a majority    a read that waits for a majority
//	deliver [KIND] [a>b]  delivers matching messages, and those that they cause, until there are none
//	lose [KIND] [a>b]  loses matching messages
//	wait DURATION      lets the time pass for every member; what they send stays in flight
//	settle SECONDS     lets the time pass in steps of a heartbeat interval, and delivers everything
//	cut ab c           from now on, messages between the groups are lost
//	heal               no more
//	start d, crash d   starts a member, which all members see; ends one
//	view a bc          a sees only these
//	forget a c         a is told to forget c
//	snapshot a         keeps the state of a's machine; "restore a" returns to it
//	trim a             cuts the log of a, as its budget may at any moment
//	show               shows what each member holds, covers and remembers
//
// An OP is "add KEY ELEMENT", "remove KEY ELEMENT", "count KEY NAME N", "write KEY NAME N", "fill
// KEY BYTES", "delete KEY" or, of an entry that expires, "use KEY TIME". The first letter of a key
// is its type: s is a set, c a map of counters, r a map of registers.
//
// Output names replicas by their member, and later replicas of a member a2, a3 and so on. "in
// flight" lists the messages that wait to be delivered.
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/*.txt", func(t *testing.T, _, text string) string {
		return playGolden(t, text)
	})
}

// golden is a lab whose steps are written down.
type golden struct {
	*lab
	out          strings.Builder
	names        map[causal.Replica]string
	incarnations map[string]int // replicas of each member so far
	groups       []string       // of members that can talk to each other; nil: all can
	kept         map[string]*Core
	quiet        map[wire.Manifest]int // not nil: messages are counted instead of written
}

func playGolden(t *testing.T, script string) string {
	g := &golden{names: map[causal.Replica]string{}, incarnations: map[string]int{},
		kept: map[string]*Core{}}
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "    ") {
			continue
		}
		fmt.Fprintln(&g.out, line)
		f := strings.Fields(line)
		if len(f) == 0 || line[0] == '#' {
			continue
		}
		if g.lab == nil {
			if f[0] != "members" {
				t.Fatalf("%q comes before members", line)
			}
			g.lab = emptyLab(t, 3, f[1:])
			g.watch = g.effect
		}
		g.do(f[0], f[1:])
		g.inFlight()
	}
	return g.out.String()
}

// line writes an indented line.
func (g *golden) line(format string, args ...any) {
	fmt.Fprintf(&g.out, "    "+format+"\n", args...)
}

func (g *golden) do(verb string, f []string) {
	g.t.Helper()
	arg := func(i int) string {
		if i >= len(f) {
			g.t.Fatalf("%s %v lacks an argument", verb, f)
		}
		return f[i]
	}
	switch verb {
	case "members":
		for _, n := range f {
			g.begin(n)
		}
		g.settle(4)
		g.line("%s", g.holds(f[0]))
	case "update":
		g.change(arg(0), f[1:])
	case "read":
		g.id++
		g.line("call %d", g.id)
		g.step(arg(0), Read{ID: g.id, Level: g.level(arg(1)), Deadline: g.now.Add(time.Hour)})
	case "deliver":
		g.carry(g.filter(f))
	case "lose":
		for _, m := range g.take(g.filter(f)) {
			g.line("lost %s", g.mail(m))
		}
	case "wait":
		g.wake(g.duration(arg(0)), g.order...)
	case "settle":
		n, err := strconv.Atoi(arg(0))
		if err != nil {
			g.t.Fatal(err)
		}
		g.settle(n)
	case "cut":
		g.groups = f
	case "heal":
		g.groups = nil
	case "start":
		if !slices.Contains(g.order, arg(0)) {
			g.order = append(g.order, f[0])
		}
		g.begin(f[0])
		for _, n := range g.order {
			g.see(n, strings.Join(g.order, ""))
		}
	case "crash":
		g.crash(arg(0))
	case "view":
		g.see(arg(0), arg(1))
	case "forget":
		g.id++
		g.line("call %d", g.id)
		g.step(arg(0), Forget{ID: g.id, Member: arg(1), Deadline: g.now.Add(time.Hour)})
	case "snapshot":
		g.kept[arg(0)] = frozen(g.cores[arg(0)])
	case "restore":
		g.cores[arg(0)] = frozen(g.kept[arg(0)])
	case "trim":
		g.cutLogs(arg(0))
	case "show":
		for _, n := range g.order {
			if g.cores[n] != nil {
				g.line("%s", g.holds(n))
			}
		}
	default:
		g.t.Fatalf("unknown command %q", verb)
	}
}

// begin starts a member, which sees all members.
func (g *golden) begin(name string) {
	g.start(name)
	g.cores[name].cfg.LogBytes, g.cores[name].cfg.PushBytes = 1<<20, 1<<12
	g.named(name)
	g.see(name, strings.Join(g.order, ""))
}

// named gives the present replica of a member a name.
func (g *golden) named(member string) string {
	r := g.cores[member].Replica()
	if g.names[r] == "" {
		g.incarnations[member]++
		g.names[r] = member
		if n := g.incarnations[member]; n > 1 {
			g.names[r] = fmt.Sprint(member, n)
		}
	}
	return g.names[r]
}

func (g *golden) level(name string) Level {
	switch name {
	case "majority":
		return majority
	case "all":
		return Level{Kind: All}
	}
	g.t.Fatalf("unknown level %q", name)
	return Level{}
}

// change makes an update: the operations, separated by commas, with an optional level before them.
func (g *golden) change(name string, f []string) {
	g.t.Helper()
	var level Level
	if len(f) > 0 && (f[0] == "majority" || f[0] == "all") {
		level, f = g.level(f[0]), f[1:]
	}
	var all []func(*history.Txn) error
	for text := range strings.SplitSeq(strings.Join(f, " "), ",") {
		all = append(all, g.operation(strings.Fields(text)))
	}
	g.id++
	g.line("call %d", g.id)
	modify := func(t *history.Txn) error {
		for _, do := range all {
			if err := do(t); err != nil {
				return err
			}
		}
		return nil
	}
	g.step(name, Update{ID: g.id, Level: level, Deadline: g.now.Add(time.Hour), Modify: modify})
	g.step(name, Wake{}) // requested at once: pushes what has been gathered
}

func (g *golden) operation(f []string) func(*history.Txn) error {
	g.t.Helper()
	f = append(f, "", "", "", "")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			g.t.Fatal(f, err)
		}
		return n
	}
	o := op{key: f[1], sub: f[2]}
	switch f[0] {
	case "add":
		o.kind = opAdd
	case "remove":
		o.kind = opRemove
	case "delete":
		o.kind = opDelete
	case "count":
		o.kind, o.value = opCount, number(f[3])
	case "write":
		o.kind, o.value = opWrite, number(f[3])
	case "fill":
		o.kind, o.sub = opAdd, strings.Repeat("x", int(number(f[2])))
	case "use":
		stamp := fmt.Sprint(number(f[2]))
		return func(t *history.Txn) error {
			t.Put(o.key, t.Get(o.key).Put(causal.UsePath,
				causal.Leaf{Dot: t.Dot(), Payload: stamp}))
			return nil
		}
	default:
		g.t.Fatalf("unknown operation %q", f)
	}
	return func(t *history.Txn) error {
		stamp, used := t.Get(o.key).LastUse() // which belongs to the entry, not to its value
		if used {
			t.Put(o.key, t.Get(o.key).Drop(causal.UsePath))
		}
		if err := perform(t, []op{o}); err != nil || o.kind == opDelete || !used {
			return err
		}
		for l := range stamp.All() {
			t.Put(o.key, t.Get(o.key).Insert(causal.UsePath, l))
		}
		return nil
	}
}

// filter returns a test for the messages that a command names.
func (g *golden) filter(f []string) func(mail) bool {
	kind, from, to := "", "", ""
	for _, word := range f {
		if a, b, link := strings.Cut(word, ">"); link {
			from, to = a, b
		} else {
			kind = word
		}
	}
	return func(m mail) bool {
		return (kind == "" || kind == kindOfMail(m)) &&
			(from == "" || from == m.from && to == m.to)
	}
}

func kindOfMail(m mail) string {
	return strings.TrimPrefix(m.send.Manifest.String(), "replicator.")
}

// carry delivers the matching messages, and those that they cause, until there are none.
func (g *golden) carry(match func(mail) bool) {
	for {
		mails := g.take(match)
		if len(mails) == 0 {
			return
		}
		for _, m := range mails {
			switch {
			case !g.connected(m.from, m.to):
				g.fate("lost", m)
			case g.cores[m.to] == nil:
				g.fate("undeliverable", m)
			default:
				g.fate("", m)
				g.hand(m)
			}
		}
	}
}

// fate writes what became of a message; while output is quiet, it counts the delivered ones.
func (g *golden) fate(of string, m mail) {
	if g.quiet == nil {
		g.line("%s", strings.TrimSpace(of+" "+g.mail(m)))
	} else if of == "" {
		g.quiet[m.send.Manifest]++
	}
}

func (g *golden) connected(a, b string) bool {
	if g.groups == nil {
		return true
	}
	return slices.ContainsFunc(g.groups, func(s string) bool {
		return strings.Contains(s, a) && strings.Contains(s, b)
	})
}

// settle lets the time pass, and delivers everything at once. It writes effects, and the number of
// messages.
func (g *golden) settle(seconds int) {
	g.quiet = map[wire.Manifest]int{}
	g.carry(all)
	for range seconds {
		g.beat(g.order...)
		g.carry(all)
	}
	var counts []string
	for m := range g.quiet {
		name := strings.TrimPrefix(m.String(), "replicator.")
		counts = append(counts, fmt.Sprintf("%s %d", name, g.quiet[m]))
	}
	slices.Sort(counts)
	g.quiet = nil
	g.line("messages: %s", strings.Join(counts, ", "))
}

func (g *golden) inFlight() {
	var all []string
	for _, m := range g.box {
		all = append(all, fmt.Sprintf("%s %s>%s", kindOfMail(m), m.from, m.to))
	}
	if len(all) > 0 {
		g.line("in flight: %s", strings.Join(all, ", "))
	}
}

// effect writes an effect that is not a message.
func (g *golden) effect(at string, e Effect) {
	switch e := e.(type) {
	case Send:
	case Done:
		g.line("%s: call %d %s", at, e.ID, g.outcome(e))
	case Changed:
		g.line("%s: changed %s", at, strings.Join(e.Keys, " "))
	case Restored:
		g.line("%s: goes on as replica %s", at, g.named(at))
	case Forgotten:
		g.line("%s: was forgotten", at)
	case Diverged:
		g.line("%s: differs from %s at the same vector", at, e.Member)
	case Mended:
		g.line("%s: has taken the state of another", at)
	default:
		g.t.Errorf("%s: unknown effect %+v", at, e)
	}
}

func (g *golden) outcome(d Done) string {
	switch {
	case d.Err != nil:
		return fmt.Sprint("failed: ", d.Err)
	case d.Short != nil:
		return fmt.Sprintf("reached %d of %d, not %s", d.Short.Answered, d.Short.Needed,
			strings.Join(d.Short.Missing, " "))
	}
	return "done"
}

// holds shows what a member holds, what it covers, and the members that it remembers.
func (g *golden) holds(name string) string {
	c := g.cores[name]
	var values []string
	for key, h := range c.Keys().All() {
		store, used := h.Store, ""
		if stamp, ok := store.LastUse(); ok {
			for l := range stamp.All() {
				used += " used at " + l.Payload
			}
			store = store.Drop(causal.UsePath)
		}
		text, err := shownAt(key, store)
		if err != nil {
			g.t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			values = append(values, g.shortened(strings.TrimSpace(line)))
		}
		if used != "" {
			values = append(values, key+used)
		}
	}
	var members []string
	for _, m := range c.members.Members() {
		members = append(members, m.Name+" "+m.Rank.String())
	}
	ready := "ready"
	if !c.Ready() {
		ready = "not ready"
	}
	return fmt.Sprintf("%s: [%s] %s %s; members: %s", g.named(name), strings.Join(values, " "),
		g.vector(c.Seen()), ready, strings.Join(members, ", "))
}

// shortened replaces the middle of a long text by its length.
func (*golden) shortened(text string) string {
	if len(text) < 80 {
		return text
	}
	return fmt.Sprintf("%s…(%d bytes)", text[:8], len(text))
}

func (g *golden) vector(v causal.Vector) string {
	var all []string
	for d := range v.All() {
		all = append(all, g.dot(d))
	}
	return "{" + strings.Join(all, " ") + "}"
}

func (g *golden) dot(d causal.Dot) string { return fmt.Sprintf("%s:%d", g.replica(d.Replica), d.N) }

func (g *golden) replica(r causal.Replica) string {
	if name := g.names[r]; name != "" {
		return name
	}
	return fmt.Sprint("replica ", r)
}

func (g *golden) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

// mail shows a message.
func (g *golden) mail(m mail) string {
	return fmt.Sprintf("%s>%s %s %s", m.from, m.to, kindOfMail(m), g.payload(m))
}

// payload shows what a message says, without numbers of calls and requests, and digests.
func (g *golden) payload(m mail) string {
	known := g.cores[m.from].bases.find(g.cores[m.from].now)
	vector := func(v *pb.VersionVector) string {
		if v == nil {
			return "digest only"
		}
		out, err := bases.Vector(v.Base, v.Replicas, v.Numbers, known)
		g.must(err)
		return g.vector(out)
	}
	b := m.send.Payload
	switch m.send.Manifest {
	case wire.ReplicatorPush:
		d, err := decodePush(b, m.replica, known)
		g.must(err)
		return fmt.Sprintf("after %s: %s", g.vector(d.Base), g.events(d.Events))
	case wire.ReplicatorAck:
		a, err := decodeAck(b)
		g.must(err)
		return fmt.Sprintf("up to %d", a.n) + flags("not ready", !a.ready)
	case wire.ReplicatorBeat:
		x := unmarshal[pb.Beat](g, b)
		return vector(x.Seen) + flags("not ready", !x.Ready, "asks for one", x.Want,
			"leaving", x.Leaving, "parting", x.Parting)
	case wire.ReplicatorRequest:
		x := unmarshal[pb.Request](g, b)
		return "beyond " + vector(x.Have) + flags("whole state", x.Whole)
	case wire.ReplicatorPart:
		x := unmarshal[pb.Part](g, b)
		return fmt.Sprintf("%d of %d bytes", x.Index, len(x.Data)) + flags("last", x.Last)
	case wire.ReplicatorMore:
		return fmt.Sprintf("from part %d on", unmarshal[pb.More](g, b).Next)
	case wire.ReplicatorProbe:
		return "at " + vector(unmarshal[pb.Probe](g, b).Want)
	case wire.ReplicatorProbeReply:
		x := unmarshal[pb.ProbeReply](g, b)
		return vector(x.Seen) + flags("not ready", !x.Ready, "new member", x.Entering,
			"parting", x.Parting)
	case wire.ReplicatorMembers:
		var all []string
		for _, r := range unmarshal[pb.Members](g, b).Members {
			all = append(all, r.Name+" "+quorum.Rank(r.Stage).String())
		}
		return strings.Join(all, ", ")
	case wire.ReplicatorCompare:
		x := unmarshal[pb.Compare](g, b)
		return fmt.Sprintf("cells %d to %d", x.From, x.From+x.Count)
	}
	return fmt.Sprintf("of %d bytes", len(b))
}

// events shows events by what they do to each key: atoms added, removed, and marks.
func (g *golden) events(all []history.DeltaEvent) string {
	var out []string
	for _, e := range all {
		text := g.dot(e.Dot)
		for _, k := range e.Keys {
			text += " " + k.Key
			if n := len(k.Adds); n > 0 {
				text += fmt.Sprintf(" +%d", n)
			}
			if n := len(k.Removes); n > 0 {
				text += fmt.Sprintf(" -%d", n)
			}
			text += flags("cleared", k.Clear, "marked", len(k.Marks) > 0)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// flags returns the names of those that are set, each with a comma before it.
func flags(pairs ...any) (out string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1].(bool) {
			out += fmt.Sprint(", ", pairs[i])
		}
	}
	return out
}

// unmarshal decodes the payload of a message.
func unmarshal[T any, P interface {
	*T
	proto.Message
}](g *golden, b []byte) *T {
	var x T
	g.must(decode(b, P(&x)))
	return &x
}

func (g *golden) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}
