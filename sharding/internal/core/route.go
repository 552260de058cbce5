package core

// route routes the messages of this process to a shard. They are sent to an announced tenure, and
// wait here until there is one.
//
// Invariant: to == 0 || to > floor.
type route struct {
	host   Member
	peer   *peer  // of the host; nil: it is this member
	to     uint64 // token of the announced tenure; 0: not known
	floor  uint64 // tenures up to this one accept no more messages, according to their host
	buffer []Body
	bytes  int

	number   uint64 // number of the last message sent
	numberOf uint64 // token of the tenure it was sent under
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
	s.spend(Data{Shard: s.n, Token: s.to, Number: s.nextNumber(), Body: b})
}

// nextNumber returns the number of the next message to the known tenure.
func (s *shard) nextNumber() uint64 {
	if s.numberOf != s.to {
		s.number, s.numberOf = 0, s.to
	}
	s.number++
	return s.number
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
	s.host, s.to, s.peer = from, token, nil
	if from != s.r.self {
		s.peer = s.r.peer(from)
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
	}
}

// unseen stops sending to a host that is not in the view. The host may come back with the same
// tenure, so the floor stays.
func (s *shard) unseen() {
	if s.to != 0 && s.host != s.r.self && !s.r.sees(s.host) {
		s.to = 0
	}
}

// onPause answers with the number of messages sent under the tenure. The answer may overtake them:
// the host waits until they have arrived.
func (s *shard) onPause(from Member, token uint64) {
	s.forget(token)
	f := Flush{Shard: s.n, Token: token}
	if s.numberOf == token {
		f.Number = s.number
	}
	s.r.tell(from, f)
}

func (s *shard) onWhere(from Member) {
	if s.phase == Running {
		s.r.tell(from, Active{s.n, s.token})
	}
}

// onData accepts a message only under exactly its tenure, in order of its number.
func (s *shard) onData(from Member, d Data) {
	switch {
	case s.phase != Running && s.phase != Flushing || d.Token != s.token:
		s.r.emit(Drop{Shard: s.n})
		s.r.tell(from, NotHere{s.n, d.Token})
	case d.Number <= s.last[from]:
		s.r.emit(Drop{s.n, true})
	default:
		s.last[from] = d.Number
		s.accept(from, d.Body, d.Delivery, d.Again)
		s.flushed()
	}
}

// asks reports whether messages wait for a host that can be asked.
func (s *shard) asks() bool {
	a := s.r.table.entries[s.n]
	return (len(s.buffer) > 0 || len(s.deliveries) > 0) && s.to == 0 && a.Version.N != 0 && a.Home != s.r.self
}

func (s *shard) ask() {
	if s.asks() {
		s.r.tell(s.r.table.entries[s.n].Home, Where{s.n})
	}
}
