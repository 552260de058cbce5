//go:build unix

package core

import (
	queue "container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// fleet is many replicas in virtual time, on a network that takes one to two milliseconds and
// counts what is sent. The heartbeats of different members are not synchronized.
type fleet struct {
	numbered
	armed   []time.Time
	due     occasions
	turn    int // order of what is due
	diary   map[int][]diaryEntry
	first   []causal.Replica // of each member
	sent    []tally          // by member
	latency time.Duration    // of a message; it may take twice as long
}

// numbered are the members of a fleet or a pump, by number.
type numbered struct {
	now        time.Time
	cores      []*Core // nil: gone
	rand       *rand.Rand
	next       causal.Replica
	cut        func(from, to int) bool
	same       map[int]int             // members that run under the id of another one
	of         map[wire.Manifest]tally // what was sent
	minMembers int
}

func newNumbered(seed1, seed2 uint64) numbered {
	return numbered{now: epoch, rand: rand.New(rand.NewPCG(seed1, seed2)),
		of: map[wire.Manifest]tally{}, minMembers: 1}
}

func (n *numbered) core() *Core { return n.coreOf(len(n.cores)) }

func (n *numbered) coreOf(i int) *Core {
	return New(Config{
		Member: fmt.Sprint(i), NewReplica: func() causal.Replica {
			n.next++
			return n.next * 0x9e3779b97f4a7c15
		},
		MinMembers: n.minMembers, BeatInterval: time.Second, BeatPeers: 3,
		Grace: 200 * time.Millisecond, Patience: 2 * time.Second, WindowCount: 1024,
		WindowBytes: 4 << 20, LogBytes: 64 << 20,
		PushBytes: 4 << 20, PartBytes: 64 << 10, CompareKeys: 64,
	})
}

// id returns the number that serves as the id of a member.
func (n *numbered) id(i int) int {
	if j, ok := n.same[i]; ok {
		return j
	}
	return i
}

// others returns the running members besides one.
func (n *numbered) others(i int) (others []Member) {
	for j, c := range n.cores {
		if n.id(j) != n.id(i) && c != nil {
			others = append(others, Member{ID: fmt.Sprint(n.id(j))})
		}
	}
	return others
}

func (n *numbered) count(s Send) {
	t := n.of[s.Manifest]
	t.add(len(s.Payload))
	n.of[s.Manifest] = t
}

// all returns the total traffic.
func (n *numbered) all() (t tally) {
	for _, o := range n.of {
		t.messages, t.bytes = t.messages+o.messages, t.bytes+o.bytes
	}
	return t
}

func (n *numbered) equal() bool {
	var first *Core
	for _, c := range n.cores {
		switch {
		case c == nil:
		case first == nil:
			first = c
		case !c.Seen().Equal(first.Seen()) || c.history.Sum() != first.history.Sum():
			return false
		}
	}
	return true
}

// diaryEntry is an input of a member: cores that take the same inputs hold the same state.
type diaryEntry struct {
	at time.Time
	ev Event
}

// tally is a number of messages and their bytes.
type tally struct{ messages, bytes int }

func (t *tally) add(bytes int) { t.messages, t.bytes = t.messages+1, t.bytes+bytes }

// occasion is the time at which something is due.
type occasion struct {
	at   time.Time
	turn int
	do   func()
}

type occasions []occasion

func (o occasions) Len() int      { return len(o) }
func (o occasions) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *occasions) Push(x any)   { *o = append(*o, x.(occasion)) }

func (o occasions) Less(i, j int) bool {
	return o[i].at.Before(o[j].at) || o[i].at.Equal(o[j].at) && o[i].turn < o[j].turn
}

func (o *occasions) Pop() any {
	last := len(*o) - 1
	x := (*o)[last]
	(*o)[last] = occasion{}
	*o = (*o)[:last]
	return x
}

// newFleet returns members that hold the given number of keys, in sync and at rest. Each has made
// an event.
func newFleet(members, keys int) *fleet {
	f := emptyFleet()
	first := newPump(1)
	first.next = 1 << 32
	first.fill(keys, 20)
	for range members {
		c := f.core()
		joins(c, first.cores[0].history.State())
		f.start(c)
	}
	for i := range members {
		f.after(f.upTo(time.Second), func() { f.view(i) })
	}
	for i := range members {
		f.after(20*time.Second+f.upTo(time.Second), func() { f.update(i, fmt.Sprint("own", i)) })
	}
	f.pass(22 * time.Second)
	f.rest()
	return f
}

func emptyFleet() *fleet {
	return &fleet{numbered: newNumbered(3, 4), latency: time.Millisecond}
}

// rest advances the time until every member has sent a heartbeat to every other.
func (f *fleet) rest() { f.pass(time.Duration(len(f.cores)/3+3) * time.Second) }

func (f *fleet) start(c *Core) {
	f.first = append(f.first, c.Replica())
	f.cores, f.armed, f.sent = append(f.cores, c), append(f.armed, time.Time{}),
		append(f.sent, tally{})
}

// view gives a member the view of all running members.
func (f *fleet) view(i int) { f.step(i, View{Others: f.others(i)}) }

// views gives all members the new view within a second, as a provider does.
func (f *fleet) views() {
	for i := range f.cores {
		f.after(f.upTo(time.Second), func() { f.view(i) })
	}
}

func (f *fleet) upTo(d time.Duration) time.Duration {
	return time.Duration(f.rand.Int64N(int64(d)))
}

func (f *fleet) after(d time.Duration, do func()) {
	f.turn++
	queue.Push(&f.due, occasion{f.now.Add(d), f.turn, do})
}

// pass advances the time.
func (f *fleet) pass(d time.Duration) {
	f.until(d, func() bool { return false })
}

// until advances the time until ok, but at most by most, and returns how long that took.
func (f *fleet) until(most time.Duration, ok func() bool) time.Duration {
	began := f.now
	end, next := f.now.Add(most), f.now
	for len(f.due) > 0 && !f.due[0].at.After(end) {
		if next.Before(f.due[0].at) {
			f.now = next
			if ok() {
				return f.now.Sub(began)
			}
			next = f.now.Add(10 * time.Millisecond) // calling ok is expensive
			continue
		}
		f.now = f.due[0].at
		queue.Pop(&f.due).(occasion).do()
	}
	f.now = end
	return most
}

func (f *fleet) step(i int, ev Event) {
	c := f.cores[i]
	if c == nil {
		return
	}
	if f.diary != nil {
		f.diary[i] = append(f.diary[i], diaryEntry{f.now, ev})
	}
	for _, e := range c.Step(f.now, ev) {
		if s, ok := e.(Send); ok {
			f.send(i, s)
		}
	}
	f.arm(i, c.NextWake())
}

func (f *fleet) send(i int, s Send) {
	f.sent[i].add(len(s.Payload))
	f.count(s)
	from := f.cores[i].Replica()
	id := number(s.Member)
	f.deliver(i, id, from, s)
	for to := range f.cores {
		if to != id && len(f.same) > 0 && f.id(to) == id {
			f.deliver(i, to, from, s)
		}
	}
}

func (f *fleet) deliver(i, to int, from causal.Replica, s Send) {
	if f.cut != nil && f.cut(i, to) {
		return
	}
	f.after(f.latency+f.upTo(f.latency), func() {
		f.step(to, Receive{Member: fmt.Sprint(f.id(i)), From: from, To: s.To, Manifest: s.Manifest,
			Payload: s.Payload})
	})
}

func (f *fleet) arm(i int, at time.Time) {
	if !f.armed[i].IsZero() && !at.Before(f.armed[i]) {
		return
	}
	f.armed[i] = at
	c := f.cores[i]
	f.after(max(0, at.Sub(f.now)), func() {
		if f.cores[i] == c && f.armed[i].Equal(at) {
			f.armed[i] = time.Time{}
			f.step(i, Wake{})
		}
	})
}

// update sets a register.
func (f *fleet) update(i int, key string) {
	f.step(i, Update{Modify: func(t *history.Txn) error {
		return setRegister(t, key, fmt.Sprint(f.now.UnixNano()))
	}})
}
