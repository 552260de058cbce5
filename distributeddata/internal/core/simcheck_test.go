package core

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// These checks run after each step, at the replica that took it. It continues to show what it has
// shown, including its own updates (monotonic reads, read your writes). It shows no update without
// those that happened before it (causal order). What it shows is what the specification says of the
// updates that it shows, so removed data stays removed. Subscribers have been sent it.

// eventOf is what values must show where a vector covers an event.
type eventOf struct {
	deps  causal.Vector
	deeds names
}

// shownText is what a replica shows under a key.
type shownText struct {
	store causal.Store
	text  string
	names names
}

// nameKeys is the number of keys over which the names of updates are spread.
const nameKeys = 4

// nameOf returns the operation by which an update is recognized.
func nameOf(id int) op {
	return op{kind: opAdd, key: fmt.Sprint("z", id%nameKeys), sub: fmt.Sprint("u", id)}
}

// done returns the updates of the open event.
func (sl *slot) done() (out names) {
	for _, d := range sl.open {
		out = out.with(d.id)
	}
	return out
}

// namesIn reads the updates that are visible in a state.
func (s *play) namesIn(keys history.Keys, sl *slot) (out names) {
	for i := range nameKeys {
		key := fmt.Sprint("z", i)
		h, ok := keys.Get(key)
		if !ok {
			continue
		}
		t := s.textOf(key, h.Store, sl)
		if t.names == nil {
			for line := range strings.Lines(t.text) {
				n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, key+"/u"),
					"=1\n"))
				if err != nil || n >= len(s.did.deeds) {
					s.w.Fail("%q is the name of no update", line)
					return out
				}
				t.names = t.names.with(n)
			}
		}
		out = out.join(t.names)
	}
	return out
}

// textOf returns what a store shows.
func (s *play) textOf(key string, store causal.Store, sl *slot) *shownText {
	if sl != nil {
		if t := sl.texts[key]; t != nil && t.store.Same(store) {
			return t
		}
	}
	text, err := shownAt(key, store)
	if err != nil {
		s.w.Fail("%s: %v", key, err)
	}
	t := &shownText{store: store, text: text}
	if sl != nil {
		sl.texts[strings.Clone(key)] = t
	}
	return t
}

// record adds an update to the history, under a name that it also writes.
func (s *play) record(sl *slot, t *history.Txn, does []effectOf) (*deed, error) {
	d := &deed{by: t.Dot().Replica, knew: sl.shows.join(sl.done())}
	name := nameOf(len(s.did.deeds))
	d.does = append(does, effectOf{key: name.key, cell: name.sub, put: true, stamp: t.Stamp()})
	s.did.add(d)
	if e := s.events[t.Dot()]; e == nil || len(sl.open) == 0 {
		if e != nil && !s.thawed {
			s.w.Fail("%s: event %v used twice", sl.id(), t.Dot())
		}
		s.events[t.Dot()] = &eventOf{deps: sl.core.Seen()}
	}
	s.events[t.Dot()].deeds = s.events[t.Dot()].deeds.with(d.id)
	d.dot, sl.open = t.Dot(), append(sl.open, d)
	return d, perform(t, []op{name})
}

// settleEvent records that the open events of a member have ended. Updates that were not made never
// will be.
func (s *play) settleEvent(sl *slot) {
	for _, d := range sl.open {
		if !d.never {
			sl.mine = sl.mine.with(d.id)
			continue
		}
		s.unmade(d)
	}
	sl.open = nil
}

// readNames reads the updates that a member shows.
func (s *play) readNames(sl *slot) {
	before := sl.shows
	sl.shows = s.namesIn(sl.core.Keys(), sl)
	if len(sl.open) > 0 && !sl.core.Gathers() { // the event has ended
		for _, d := range sl.open {
			if d.never = !sl.shows.has(d.id); d.never && (d.told || !sl.broke) {
				s.w.Fail("%s does not show its own update %d", sl.id(), d.id)
			}
		}
		s.settleEvent(sl)
	}
	if s.w.Again() || s.thawed {
		return
	}
	if lost := before.without(sl.shows); len(lost) > 0 {
		s.w.Fail("%s does not show any more what it has shown: %v", sl.id(), lost)
	}
	for _, id := range sl.shows.without(before).all() {
		switch d := s.did.deeds[id]; {
		case d.never:
			s.w.Fail("%s shows update %d, which never was", sl.id(), id)
		case !d.knew.within(sl.shows):
			s.w.Fail("%s shows update %d, and not what happened before it: %v", sl.id(), id,
				d.knew.without(sl.shows))
		}
	}
}

// check asserts what must hold after a step that has changed anything.
func (s *play) check(sl *slot) {
	c := sl.core
	if s.w.Again() || sl.last.Equal(c.Seen()) && len(c.touched) == 0 {
		return
	}
	if err := audit(c); err != nil {
		s.w.Fail("%s: %v", sl.id(), err)
	}
	if !s.thawed {
		s.specified(sl, c.Keys(), sl.shows)
		s.covers(sl)
	}
	sl.last = c.Seen()
	for _, key := range s.did.keys() {
		h, _ := c.Keys().Get(key)
		if t := s.textOf(key, h.Store, sl); t.text != sl.told[key] {
			s.w.Fail("%s shows\n%sbut its subscribers were told\n%s", sl.id(), t.text, sl.told[key])
		}
	}
}

// specified asserts that a state shows what the specification says of the updates in it.
func (s *play) specified(sl *slot, keys history.Keys, shows names) {
	for _, key := range s.did.keys() {
		h, _ := keys.Get(key)
		if t, says := s.textOf(key, h.Store, sl), s.did.says(key, shows); t.text != says {
			s.w.Fail("%s shows\n%sspecification says\n%s", sl.id(), t.text, says)
		}
	}
}

// covers asserts that the vector of a member is a causal cut, and covers exactly the events of the
// updates that are readable there.
func (s *play) covers(sl *slot) {
	seen := sl.core.Seen()
	for d := range seen.Beyond(sl.last) {
		for n := sl.last.Get(d.Replica) + 1; n <= d.N; n++ {
			dot := causal.Dot{Replica: d.Replica, N: n}
			e := s.events[dot]
			if e == nil {
				s.w.Fail("%s claims event %v, which never was", sl.id(), dot)
				return
			}
			if !e.deps.Leq(seen) {
				s.w.Fail("%s has seen %v but not what it followed: %v", sl.id(), dot, e.deps)
			}
			sl.has = sl.has.join(e.deeds)
		}
	}
	if !sl.has.within(sl.shows) || !sl.shows.within(sl.has) {
		s.w.Fail("%s covers updates %v and shows %v", sl.id(), sl.has.without(sl.shows),
			sl.shows.without(sl.has))
	}
}

// tell notifies the subscriber of a member of the content of keys.
func (s *play) tell(sl *slot, keys []string) {
	for _, key := range keys {
		h, _ := sl.core.Keys().Get(key)
		sl.told[key] = s.textOf(key, h.Store, sl).text
	}
}

// overlap asserts that any majority of ready replicas has every acknowledged write.
func (s *play) overlap() {
	if s.thawed {
		return
	}
	lacks := map[int]int{}
	for _, sl := range s.slots {
		if sl.core != nil && sl.core.Ready() {
			for _, id := range s.acked.without(sl.shows).all() {
				lacks[id]++
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(lacks)) {
		if lacks[id] >= players/2+1 {
			s.w.Fail("acknowledged update %d is unknown to %d of %d ready replicas", id, lacks[id],
				s.ready())
		}
	}
}
