package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// lab is a few replicas and a post office in which a test picks what is delivered when.
type lab struct {
	t     *testing.T
	now   time.Time
	cores map[string]*Core
	order []string
	box   []mail
	done  map[uint64]Done
	reb   []Restored
	told  map[string][]string // keys reported as changed, by replica
	next  causal.Replica
	id    uint64
	large bool // production sizes
	trap  func(place string)
	least int // MinMembers; 0: the number of members

	patience time.Duration // of members that start, and five times the grace; 0: the usual ones

	fuse    map[string]int            // the step of the replica panics after that many places
	calls   map[string][]uint64       // by replica
	stored  func(at string, e Effect) // handles store calls, if the membership is a record
	second  int                       // it panics again after that many more places
	blasted int                       // number of steps that have panicked
	alarms  []alarm
	watch   func(at string, e Effect)
	disks   map[string]*labDisk // nil: members have no disks

	batchRows int // batchRows of their disks; 0: as in production
}

// alarm is an effect that operators should hear of.
type alarm struct {
	at   string
	what Effect
}

type mail struct {
	from, to string
	replica  causal.Replica
	send     Send
}

func newLab(t *testing.T, names ...string) *lab { return newLabOf(t, 0, names...) }

// newLabOf returns a lab of members with the given MinMembers.
func newLabOf(t *testing.T, least int, names ...string) *lab {
	l := emptyLab(t, least, names)
	for _, n := range names {
		l.start(n)
	}
	l.meet()
	return l
}

// emptyLab returns a lab without members.
func emptyLab(t *testing.T, least int, names []string) *lab {
	return &lab{t: t, least: least, now: epoch, cores: map[string]*Core{}, order: names,
		done: map[uint64]Done{}, told: map[string][]string{}, fuse: map[string]int{},
		calls: map[string][]uint64{}}
}

func (l *lab) start(name string) {
	least := l.least
	if least == 0 {
		least = len(l.order)
	}
	cfg := Config{
		Member: name, Recorded: l.stored != nil, NewReplica: func() causal.Replica {
			l.next++
			return l.next
		},
		MinMembers: least, BeatInterval: time.Second, BeatPeers: len(l.order),
		Grace:    200 * time.Millisecond,
		Patience: 5 * time.Second, WindowCount: 16, WindowBytes: 1 << 20, LogBytes: 1 << 20,
		PushBytes: 1 << 20, PartBytes: 64, CompareKeys: 1,
		Reach: func(place string) { l.reach(name, place) }, Disk: l.diskOf(name),
	}
	if l.large {
		cfg.WindowBytes, cfg.LogBytes, cfg.PushBytes, cfg.PartBytes = 4<<20, 1<<30, 4<<20, 64<<10
	}
	l.cores[name] = New(cfg)
	if l.patience > 0 {
		l.hurry(name)
	}
}

// hurry gives a member the patience of the lab.
func (l *lab) hurry(name string) {
	cfg := &l.cores[name].cfg
	cfg.Patience, cfg.Grace = l.patience, l.patience/5
}

// enter adds a member that has started, and gives all the view of all.
func (l *lab) enter(name string) {
	if !slices.Contains(l.order, name) {
		l.order = append(l.order, name)
	}
	for _, n := range l.order {
		l.see(n, strings.Join(l.order, ""))
	}
}

// meet gives all running members the view of all, and delivers messages until none is left.
func (l *lab) meet() {
	l.seeAll(l.order...)
	l.pass(4 * time.Second)
}

func (l *lab) meets(times int) {
	for range times {
		l.meet()
	}
}

// seeAll gives members the view of all running members.
func (l *lab) seeAll(names ...string) {
	run := ""
	for _, n := range l.order {
		if l.cores[n] != nil {
			run += n
		}
	}
	for _, n := range names {
		l.see(n, run)
	}
}

// see gives a member a view of others, which have names of one letter.
func (l *lab) see(name, others string) {
	var view []Member
	for o := range strings.SplitSeq(others, "") {
		if o != name {
			view = append(view, Member{ID: o, Address: "at " + o})
		}
	}
	l.step(name, View{Others: view})
}

func (l *lab) step(name string, ev Event) {
	c := l.cores[name]
	if c == nil {
		return
	}
	var commits []Commit
	for _, e := range l.attempt(name, ev) {
		if l.watch != nil {
			l.watch(name, e)
		}
		switch e := e.(type) {
		case Commit:
			commits = append(commits, e)
		case Send:
			l.box = append(l.box, mail{name, e.Member, c.Replica(), e})
		case Done:
			if _, before := l.done[e.ID]; before && e.ID != 0 {
				l.t.Errorf("%s answers call %d once more: %+v", name, e.ID, e)
			}
			l.done[e.ID] = e
		case Changed:
			l.told[name] = append(l.told[name], e.Keys...)
		case Restored:
			l.reb = append(l.reb, e)
		case LoadRecord, SwapRecord:
			l.stored(name, e)
		case DuplicateName, Unequal, OtherExpiry, Forgotten, Troubled, Unrecovered:
			l.alarms = append(l.alarms, alarm{name, e})
		}
	}
	for _, e := range commits {
		l.commit(name, e)
	}
}

// tick advances the time and delivers everything.
func (l *lab) tick(d time.Duration) {
	l.wake(d, l.order...)
	l.deliver(all)
}

// pass advances the time by seconds, and delivers everything after each of them.
func (l *lab) pass(d time.Duration) {
	for ; d > 0; d -= time.Second {
		l.tick(time.Second)
	}
}

// wake advances the time, and lets members notice that.
func (l *lab) wake(d time.Duration, names ...string) {
	l.now = l.now.Add(d)
	for _, n := range names {
		l.step(n, Wake{})
	}
}

// beat is wake after a heartbeat interval.
func (l *lab) beat(names ...string) { l.wake(time.Second, names...) }

func all(mail) bool { return true }

func of(m wire.Manifest) func(mail) bool {
	return func(x mail) bool { return x.send.Manifest == m }
}

func between(from, to string) func(mail) bool {
	return func(x mail) bool { return x.from == from && x.to == to }
}

// take removes and returns the matching mail.
func (l *lab) take(match func(mail) bool) (out []mail) {
	l.box = slices.DeleteFunc(l.box, func(m mail) bool {
		if match(m) {
			out = append(out, m)
			return true
		}
		return false
	})
	return out
}

// deliver delivers the matching mail, and the mail that it causes, until none is left.
func (l *lab) deliver(match func(mail) bool) {
	for {
		mails := l.take(match)
		if len(mails) == 0 {
			return
		}
		l.hand(mails...)
	}
}

func (l *lab) hand(mails ...mail) {
	for _, m := range mails {
		l.step(m.to, Receive{Member: m.from, From: m.replica, To: m.send.To,
			Manifest: m.send.Manifest, Payload: m.send.Payload})
	}
}

// begin begins an update at a level, and returns its id.
func (l *lab) begin(name string, level Level, ops ...op) uint64 {
	l.id++
	l.step(name, Update{ID: l.id, Level: level, Deadline: l.now.Add(time.Hour),
		Modify: func(t *history.Txn) error {
			return perform(t, ops)
		}})
	return l.id
}

// answered begins an update that is answered at once.
func (l *lab) answered(name string, ops ...op) { l.begin(name, Level{}, ops...) }

// update is begin, and pushes what has been gathered.
func (l *lab) update(name string, level Level, ops ...op) uint64 {
	defer l.step(name, Wake{}) // requested at once
	return l.begin(name, level, ops...)
}

// leave makes a member begin to leave in order.
func (l *lab) leave(name string) uint64 {
	l.id++
	l.step(name, Drain{ID: l.id, Leave: true, Deadline: l.now.Add(time.Hour)})
	return l.id
}

// forget tells a member to forget another one.
func (l *lab) forget(name, victim string, force bool) uint64 {
	l.id++
	l.step(name, Forget{ID: l.id, Member: victim, Force: force, Deadline: l.now.Add(time.Hour)})
	return l.id
}

// quiet makes an update without a waiter.
func (l *lab) quiet(name string, ops ...op) {
	l.step(name, Update{Modify: func(t *history.Txn) error { return perform(t, ops) }})
}

func (l *lab) shows(name, want string) {
	l.t.Helper()
	require.Equal(l.t, want, l.text(name), name)
}

// text returns what a member shows.
func (l *lab) text(name string) string {
	l.t.Helper()
	text, err := shown(l.cores[name].Keys())
	require.NoError(l.t, err)
	return text
}

// allShow asserts that each member shows want.
func (l *lab) allShow(want string) {
	l.t.Helper()
	for _, n := range l.order {
		l.shows(n, want)
	}
}

func (l *lab) allReady() {
	l.t.Helper()
	for _, n := range l.order {
		require.True(l.t, l.cores[n].Ready(), "%s: %+v", n, l.cores[n].QuorumStatus())
	}
}

// succeeded asserts that calls have ended well.
func (l *lab) succeeded(calls ...uint64) {
	l.t.Helper()
	for _, id := range calls {
		require.Contains(l.t, l.done, id)
		require.Nil(l.t, l.done[id].Short, "call %d", id)
		require.NoError(l.t, l.done[id].Err, "call %d", id)
	}
}

func (l *lab) cutLogs(name string) {
	cutLog(l.cores[name])
}

// cutLog removes everything from the log of a replica.
func cutLog(c *Core) {
	c.history.Trim(c.Seen(), nil, func(causal.Replica) bool { return false }, 0)
}

// audit recomputes the fingerprint of a replica, and checks that its log ends with what the replica
// has seen.
func audit(c *Core) error {
	var all history.Builder
	for key, h := range c.Keys().All() {
		var b history.KeyBuilder
		for path, e := range h.Prefix("") {
			for leaf := range e.All() {
				b.Add(key, causal.Atom{Path: path, Leaf: leaf})
			}
		}
		all.Add(key, b.Held())
	}
	if sum := all.State(c.Seen()).Sum; sum != c.history.Sum() {
		return fmt.Errorf("fingerprint %x of %x", c.history.Sum(), sum)
	}
	for d := range c.Seen().All() {
		events, ok := c.history.Events(d.Replica, d.N)
		if ok && (len(events) != 1 || events[0].Dot != d) {
			return fmt.Errorf("log of %v: does not end there", d)
		}
	}
	return nil
}

func add(key, e string) op    { return op{kind: opAdd, key: key, sub: e} }
func remove(key, e string) op { return op{kind: opRemove, key: key, sub: e} }
func count(key, k string, n int64) op {
	return op{kind: opCount, key: key, sub: k, value: n}
}
func drop(key, k string) op { return op{kind: opDrop, key: key, sub: k} }

var majority = Level{Kind: Majority}

var epoch = time.Unix(1_700_000_000, 0)
