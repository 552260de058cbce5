package lane

import (
	"maps"

	"github.com/concord-go/concord/sharding/internal/core"
)

// In decides which messages of other members a shard accepts: those under exactly its tenure, in
// the order of their numbers. The zero value accepts none.
type In struct {
	admit      core.Admit
	last       map[core.Member]uint64 // highest number accepted from each member in this tenure
	deliveries uint64                 // accepted in this tenure
}

// Verdict is what a shard does with a message.
type Verdict uint8

// Verdicts.
const (
	// Strange means that there is no such tenure here. The message is passed to the region as
	// Received.
	Strange Verdict = iota
	// Repeated means that the message was accepted before, or a later one was. It is dropped.
	Repeated
	// Accepted means that the message goes to its entity, or to the region as Arrived if it is a
	// delivery.
	Accepted
	// Awaited is like Accepted, and the region is notified with Arrived after that.
	Awaited
)

// Take decides about a message. The caller must pass accepted messages on in this order, and before
// the region's next Stop or StopNow of the tenure is carried out.
func (i *In) Take(from core.Member, d core.Data) Verdict {
	switch {
	case i.admit.Token == 0 || d.Token != i.admit.Token:
		return Strange
	case d.Number <= i.last[from]:
		return Repeated
	}
	i.last[from] = d.Number
	if d.Delivery != 0 {
		i.deliveries++
	}
	if i.admit.Count {
		return Awaited
	}
	return Accepted
}

// Admit carries out an effect of the region. If it has to be answered, ok is true.
func (i *In) Admit(e core.Admit) (answer core.Counted, ok bool) {
	if i.admit.Token != e.Token {
		i.last, i.deliveries = map[core.Member]uint64{}, 0
	}
	i.admit = e
	if e.Token == 0 {
		i.last = nil
	}
	return core.Counted{Shard: e.Shard, Token: e.Token, Last: maps.Clone(i.last),
		Deliveries: i.deliveries}, e.Count
}
