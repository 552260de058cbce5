package core

import "slices"

// route routes the messages of this process to a shard. They are sent to an announced tenure, and
// wait here until there is one.
//
// Invariant: to == 0 || to > floor.
type route struct {
	host   Member
	peer   *peer // of the host; nil: it is this member
	line   Line
	to     uint64 // token of the announced tenure; 0: not known
	floor  uint64 // tenures up to this one accept no more messages, according to their host
	last   uint64 // token of the last tenure known, until its host is gone; 0: none
	paused bool   // its host gives it up in order
	buffer []Body
	bytes  int
}

// shareOfBuffer is the divisor for the part of the buffer that one shard may use, so that an
// unavailable shard does not starve others.
const shareOfBuffer = 8

// send routes a message, or buffers it. If the buffer is full, it rejects the newest message, since
// dropping the oldest would break the order seen by its sender.
func (s *shard) send(b Body) {
	blocked := s.blocked()
	switch {
	case (s.to == 0 || blocked) && s.full(b):
		s.r.emit(Refuse{s.n, b})
	case s.to == 0, blocked:
		if blocked && len(s.buffer) == 0 {
			s.peer.blocked = append(s.peer.blocked, s.n)
		}
		s.buffer = append(s.buffer, b)
		s.bytes += b.Size
		s.r.waiting++
		s.r.bytes += b.Size
	default:
		s.transmit(b)
	}
}

// transmit sends a message to the known tenure.
func (s *shard) transmit(b Body) {
	if s.host == s.r.self {
		s.r.emit(Deliver{Shard: s.n, Token: s.to, Body: b})
		return
	}
	s.spend(Data{Shard: s.n, Token: s.to, Number: s.line.queue(s.to), Body: b})
}

func (s *shard) full(b Body) bool {
	c := s.r.cfg
	return s.r.waiting >= c.Buffer || len(s.buffer) >= max(1, c.Buffer/shareOfBuffer) ||
		s.r.bytes+b.Size > c.BufferBytes || s.bytes+b.Size > c.BufferBytes/shareOfBuffer
}

// onActive records the tenure that a host announces, and sends the waiting messages.
func (s *shard) onActive(from Member, token uint64) {
	if token <= s.to || token <= s.floor {
		return
	}
	if !s.paused {
		s.orphan()
	}
	s.host, s.to, s.peer = from, token, nil
	s.last, s.paused = token, false
	s.line.Shut()
	if from != s.r.self {
		s.peer = s.r.peer(from)
		s.line.open(from, token, &s.peer.flow)
	}
	s.sendAll()
	s.redeliver()
}

// withdraw removes and returns the waiting messages.
func (s *shard) withdraw() []Body {
	waiting := s.buffer
	s.r.waiting -= len(waiting)
	s.r.bytes -= s.bytes
	s.buffer, s.bytes = nil, 0
	return waiting
}

// forget records that a host accepts no more messages under its tenure.
func (s *shard) forget(token uint64) {
	s.floor = max(s.floor, token)
	if s.to <= token {
		s.to = 0
		s.line.Shut()
	}
}

// unseen stops sending to a host that is not in the view. The host may come back with the same
// tenure, so the floor stays.
func (s *shard) unseen() {
	if s.host == s.r.self || s.r.sees(s.host) {
		return
	}
	if s.to != 0 {
		s.to = 0
		s.line.Shut()
	}
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

// onPause answers with the number of messages sent under the tenure. The answer may overtake them:
// the host waits until they have arrived.
func (s *shard) onPause(from Member, token uint64) {
	s.forget(token)
	s.paused = s.paused || token == s.last
	s.r.tell(from, Flush{Shard: s.n, Token: token, Number: s.line.last(token)})
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
	return (len(s.buffer) > 0 || len(s.deliveries) > 0) && s.to == 0 && a.Version.N != 0 &&
		a.Home != s.r.self
}

func (s *shard) ask() {
	if s.asks() {
		s.r.tell(s.r.table.entries[s.n].Home, Where{s.n})
	}
}
