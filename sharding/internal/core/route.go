package core

import "slices"

// route is what the region knows of the way of this process's messages to a shard. They are sent to
// an announced tenure, and wait outside the region until there is one.
//
// Invariant: to == 0 || to > floor.
type route struct {
	host   Member
	peer   *peer  // of the host; nil: it is this member
	to     uint64 // token of the announced tenure; 0: not known
	floor  uint64 // tenures up to this one accept no more messages, according to their host
	last   uint64 // token of the last tenure known, until its host is gone; 0: none
	paused bool   // its host gives it up in order
	given  given  // the tenure before it, if its host gave it up in order
	waits  bool   // messages wait, and no tenure is known
}

// given is a tenure that its host gave up, or was giving up when another one began: it may be gone
// before it has answered all that was sent.
type given struct {
	host  Member
	token uint64 // 0: none
}

// open sends what waits to the known tenure, and what follows.
func (s *shard) open() {
	s.waits = false
	s.r.emit(Open{s.n, s.host, s.to})
}

// shut lets the messages wait.
func (s *shard) shut() {
	if s.to != 0 {
		s.to = 0
		s.r.emit(Shut{s.n})
	}
}

// onWaits records that messages wait. They may have begun to wait before a tenure was announced.
func (s *shard) onWaits() {
	if s.to != 0 {
		s.open()
		return
	}
	s.waits = true
}

// onActive records the tenure that a host announces, and sends the waiting messages.
func (s *shard) onActive(from Member, token uint64) {
	if token <= s.to || token <= s.floor {
		return
	}
	if s.paused {
		s.given = given{s.host, s.last}
	} else {
		s.orphan()
	}
	s.host, s.to, s.peer = from, token, nil
	s.last, s.paused = token, false
	if from != s.r.self {
		s.peer = s.r.peer(from)
	}
	s.open()
	s.redeliver()
}

// forget records that a host accepts no more messages under its tenure.
func (s *shard) forget(token uint64) {
	s.floor = max(s.floor, token)
	if s.to <= token {
		s.shut()
	}
}

// unseen stops sending to a host that is not in the view. The host may come back with the same
// tenure, so the floor stays.
func (s *shard) unseen() {
	if g := s.given; g.token != 0 && g.host != s.r.self && !s.r.sees(g.host) {
		s.given = given{}
		if !slices.Contains(s.r.departed, g.host) {
			s.r.emit(Orphaned{Tenure{s.n, g.token}})
		}
	}
	if s.host == s.r.self || s.r.sees(s.host) {
		return
	}
	s.shut()
	if slices.Contains(s.r.departed, s.host) {
		s.last = 0
	}
	s.orphan()
}

// orphan reports that what was sent under the last tenure is not answered any more.
func (s *shard) orphan() {
	if s.last != 0 {
		s.r.emit(Orphaned{Tenure{s.n, s.last}})
	}
	s.last = 0
}

// onPause answers with the number of messages sent under the tenure, which is known when the answer
// is sent. It may overtake them: the host waits until they have arrived.
func (s *shard) onPause(from Member, token uint64) {
	s.forget(token)
	s.paused = s.paused || token == s.last
	s.r.tell(from, Flush{Shard: s.n, Token: token})
}

// onInactive records that a tenure was lost, perhaps while its host gave it up.
func (s *shard) onInactive(token uint64) {
	s.forget(token)
	s.paused = s.paused && token != s.last
}

func (s *shard) onWhere(from Member) {
	if s.phase == Running {
		s.r.tell(from, Active{s.n, s.token})
	}
}

// strange answers a message that met no tenure.
func (s *shard) strange(from Member, d Data) {
	drop := Drop{Shard: s.n}
	if d.Delivery == 0 {
		drop.Body = d.Body
	}
	s.r.emit(drop)
	s.r.tell(from, NotHere{s.n, d.Token})
}

// onArrived processes a message that was accepted. Those that are not deliveries are with their
// entities.
func (s *shard) onArrived(ev Arrived) {
	d := ev.Data
	switch {
	case s.phase != Running && s.phase != Flushing || d.Token != s.token:
		if d.Delivery != 0 {
			s.strange(ev.From, d)
		}
		return
	case d.Delivery != 0:
		s.came++
		s.accept(ev.From, d.Body, d.Delivery, d.Again)
	}
	s.hear(ev.From, d.Number)
	s.flushed()
}

// asks reports whether messages wait for a host that can be asked.
func (s *shard) asks() bool {
	a := s.r.table.entries[s.n]
	return (s.waits || len(s.deliveries) > 0) && s.to == 0 && a.Version.N != 0 &&
		a.Home != s.r.self
}

func (s *shard) ask() {
	if s.asks() {
		s.r.tell(s.r.table.entries[s.n].Home, Where{s.n})
	}
}
