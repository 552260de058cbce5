package membership

import (
	"slices"
	"time"
)

// permit is our promise to stay until a member that steps down has rejoined.
type permit struct {
	id, address string
	incarnation uint64
	sequence    uint64 // of the last hello that carried it
	until       time.Time
}

// request is a hello that asked for a permit.
type request struct {
	id          string
	incarnation uint64
	sequence    uint64
	at          time.Time
}

// permits holds the permits that this member has given, and its own requests.
type permits struct {
	settings
	given      []permit  // at most core.most
	strangerAt time.Time // when one was given to a stranger
	requests   []request // of the last roundTrip
	askedAt    time.Time // time of the last request
}

// forget forgets requests that no permit can answer any more.
func (x *permits) forget(now time.Time) {
	x.requests = slices.DeleteFunc(x.requests, func(r request) bool {
		return now.Sub(r.at) > x.roundTrip
	})
}

// mayAsk reports whether the last request is long enough ago.
func (x *permits) mayAsk(now time.Time) bool { return now.Sub(x.askedAt) >= x.retry }

func (x *permits) ask(r request) {
	x.askedAt = r.at
	x.requests = append(x.requests, r)
}

// asking reports whether a permit may be on its way.
func (x *permits) asking() bool { return len(x.requests) > 0 }

// asked reports whether a hello grants a recent request.
func (x *permits) asked(now time.Time, r received) bool {
	return slices.ContainsFunc(x.requests, func(q request) bool {
		return q.id == r.member && q.incarnation == r.from && q.sequence == r.hello.permit &&
			now.Sub(q.at) <= x.roundTrip
	})
}

// of returns the index of the permit of a hello's sender, or -1.
func (x *permits) of(r received) int {
	return slices.IndexFunc(x.given, func(p permit) bool {
		return p.id == r.member && p.incarnation == r.from
	})
}

// decline removes the permit that a hello declines.
func (x *permits) decline(r received) {
	x.given = slices.DeleteFunc(x.given, func(p permit) bool {
		return p.id == r.member && p.incarnation == r.from && p.sequence == r.hello.declined
	})
}

// forStranger reports whether a stranger may get a permit, and counts it: they get one at a time,
// for a quarter of the time.
func (x *permits) forStranger(now time.Time) bool {
	if len(x.given) > 0 || now.Sub(x.strangerAt) < 4*x.permitFor {
		return false
	}
	x.strangerAt = now
	return true
}

// expire removes permits whose time is over, and those of members that are back.
func (x *permits) expire(now time.Time, back func(permit) bool) {
	x.given = slices.DeleteFunc(x.given, func(p permit) bool {
		return back(p) || !now.Before(p.until)
	})
}

// awaits reports whether a member at this address has a permit to rejoin.
func (x *permits) awaits(address string) bool {
	return slices.ContainsFunc(x.given, func(p permit) bool { return p.address == address })
}
