// Package outbox decides when the own events of a replica are pushed, and which of their causes a
// push names [R8, R9]. It knows neither what the events do nor which members get
// them.
//
// Own events gather until Due. Begin then says which of them the push holds, Causes what it
// follows, and Sent how it went.
package outbox

import (
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// Pause is the shortest time between two pushes, unless a call waits for the second, or the first
// had at most Few events and has been acknowledged by all members. Updates one by one thus travel
// at once, and a burst travels together.
const (
	Pause = time.Millisecond
	Few   = 2
)

// Outbox is what a replica has pushed, and what has gathered since.
type Outbox struct {
	pushed   uint64        // own events up to this one have been pushed
	from     uint64        // the last push held those after this one
	at       time.Time     // of the last push
	few      bool          // it had at most Few events, and receivers
	gathered int           // estimated bytes of the events since, including the open ones
	told     causal.Vector // the newest own push and everything that it follows
	implied  causal.Vector // what pushes of others that were applied since then follow
}

// Gather adds to the estimate of what has gathered.
func (o *Outbox) Gather(bytes int) { o.gathered += bytes }

// Gathered returns the estimated bytes that have gathered.
func (o *Outbox) Gathered() int { return o.gathered }

// Pushed returns the last own event that has been pushed.
func (o *Outbox) Pushed() uint64 { return o.pushed }

// Hurries reports whether calls that wait for the events from first to last need a push before its
// time. They may wait for a pause, as others do, if an earlier one of them waits for a push before
// the last one: those that arrive meanwhile then share a push.
func (o *Outbox) Hurries(first, last uint64) bool { return last > o.pushed && first > o.from }

// Due returns when what has gathered must be pushed. hurries says that a call needs it, underway
// that a member has not acknowledged a push.
func (o *Outbox) Due(now time.Time, hurries bool, underway func() bool) time.Time {
	since := now.Sub(o.at)
	if hurries || since < 0 || since >= Pause || o.few && !underway() {
		return now
	}
	return o.at.Add(Pause)
}

// Begin begins a push of the own events up to n, and returns the one that it starts after. It
// reports whether there are any.
func (o *Outbox) Begin(now time.Time, n uint64) (from uint64, some bool) {
	from = o.pushed
	o.pushed, o.gathered = n, 0
	if from == n {
		return from, false
	}
	o.at, o.few, o.from = now, false, from
	return from, true
}

// Sent records the number of events of a push that has receivers.
func (o *Outbox) Sent(events int) { o.few = events <= Few }

// Causes returns what a push of the events of me up to n names: n, and those events of seen that
// neither an earlier push nor a named event follows. A replica that has seen an event has seen
// everything that it follows.
func (o *Outbox) Causes(me causal.Replica, n uint64, seen causal.Vector) causal.Vector {
	head := seen
	if o.told.Len() > 0 {
		follows := []causal.Dot{{Replica: me, N: n}}
		for e := range seen.Beyond(o.told) {
			if !o.implied.Covers(e) {
				follows = append(follows, e)
			}
		}
		head = causal.MakeVector(follows...)
	}
	o.told, o.implied = seen, causal.Vector{}
	return head
}

// Applied records that a push of another origin has been applied, which followed base. Later pushes
// need not name what base covers.
func (o *Outbox) Applied(base causal.Vector) { o.implied = o.implied.Join(base) }

// Again forgets what other members have been told: the next push names everything that it follows.
// There may be events to push.
func (o *Outbox) Again() { o.told, o.gathered = causal.Vector{}, 1 }
