package core

import (
	"bytes"
	"reflect"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// The end of a history.

// heal ends every fault and asserts that all become byte-equal, with nothing acknowledged lost.
func (s *play) heal() {
	s.w.Calm()
	s.mendDisks()
	s.w.Until(7 * time.Second) // all members that are down start
	s.endGhosts()
	for _, sl := range s.slots {
		s.tellView(sl)
	}
	for range 240 { // answers in parts of 40 bytes take a minute
		if s.equal() || s.w.Failed() {
			break
		}
		s.w.Until(time.Second / 2)
	}
	if !s.w.Failed() && !s.equal() {
		s.w.Fail("not equal and ready: %s", s.memories())
	}
	if s.w.Failed() {
		return
	}
	doubtful := s.doubtful()
	for _, sl := range s.slots {
		s.count(sl)
		if !sl.core.Ready() {
			s.w.Fail("%s never became ready", sl.id())
		}
		if lost := s.acked.without(sl.shows).without(doubtful); len(lost) > 0 {
			s.w.Fail("acknowledged updates %v are lost at %s", lost, sl.id())
		}
		for _, o := range s.slots {
			if lost := o.mine.without(sl.shows).without(doubtful); len(lost) > 0 {
				s.w.Fail("%s lacks what former incarnations of %s did: %v", sl.id(), o.id(), lost)
			}
		}
		if a, b := stateBytes(s.slots[0].core), stateBytes(sl.core); !bytes.Equal(a, b) {
			s.w.Fail("equal vectors, other bytes at %s", sl.id())
		}
		for key, h := range sl.core.Keys().All() {
			if bytes := weigh(h.Store); bytes != h.Bytes() {
				s.w.Fail("%s holds %d bytes under %q, and says %d", sl.id(), bytes, key, h.Bytes())
			}
		}
	}
}

// weigh counts the bytes of the atoms of a store.
func weigh(s causal.Store) (bytes int) {
	for path, e := range s.Prefix("") {
		for l := range e.All() {
			bytes += len(path) + len(l.Payload)
		}
	}
	return bytes
}

func (s *play) equal() bool {
	for _, sl := range s.slots {
		if sl.core == nil || !sl.core.Seen().Equal(s.slots[0].core.Seen()) || !sl.core.Ready() {
			return false
		}
		if sl.core.history.Sum() != s.slots[0].core.history.Sum() && s.thawed {
			return false // outvoted replicas repair themselves
		}
	}
	return true
}

// stateBytes returns the canonical encoding of a replica's state. Marks are bookkeeping that each
// replica drops when it may, so they are left out.
func stateBytes(c *Core) []byte {
	var b history.Builder
	for key, h := range c.Keys().All() {
		for path := range h.Marks() {
			h.Store = h.WithoutMark(path)
		}
		if !h.Empty() {
			b.Add(key, h)
		}
	}
	return encodeState(history.State{Keys: b.State(c.Seen()).Keys, Seen: c.Seen(),
		Sum: c.history.Sum()})
}

// encodeState returns the stream of a state in one piece.
func encodeState(s history.State) []byte {
	src := source{keys: s.Keys, head: head{head: s.Seen, state: true, sum: s.Sum}}
	out, _ := src.take(1 << 30)
	return out
}

// count adds the statistics of a member.
func (s *play) count(sl *slot) {
	for f, n := range reflect.ValueOf(sl.core.Stats()).Fields() {
		if sl.misled && f.Name == "Malformed" {
			s.happened["forged bases refused"] += int(n.Uint())
		} else if n.CanUint() {
			s.happened[f.Name] += int(n.Uint())
		}
	}
}
