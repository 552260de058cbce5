package core

// route is how messages of this process get to a shard. They go to an announced tenure, and wait here
// until there is one.
//
// Invariant: to == 0 || to > floor.
type route struct {
	host   Member
	to     uint64 // token of the announced tenure; 0: not known
	floor  uint64 // tenures up to this take nothing any more, by the word of their host
	buffer []Body
	bytes  int

	number   uint64 // of the last message sent
	numberOf uint64 // under which tenure
}

// shareOfBuffer is the part of the buffer that one shard may take, so that one that is dark does not starve others.
const shareOfBuffer = 8

// send routes a message, or keeps it. The newest is refused, since giving up the oldest would break the order
// that its sender sees.
func (s *shard) send(b Body) {
	switch {
	case s.to == 0 && s.full(b):
		s.r.emit(Refuse{s.n, b})
	case s.to == 0:
		s.buffer = append(s.buffer, b)
		s.bytes += b.Size
		s.r.waiting++
		s.r.bytes += b.Size
	case s.host == s.r.self:
		s.r.emit(Deliver{s.n, s.to, b})
	default:
		if s.numberOf != s.to {
			s.number, s.numberOf = 0, s.to
		}
		s.number++
		s.r.tell(s.host, Data{s.n, s.to, s.number, b})
	}
}

func (s *shard) full(b Body) bool {
	c := s.r.cfg
	return s.r.waiting >= c.Buffer || len(s.buffer) >= max(1, c.Buffer/shareOfBuffer) ||
		s.r.bytes+b.Size > c.BufferBytes || s.bytes+b.Size > c.BufferBytes/shareOfBuffer
}

// onActive takes the word of a host for its tenure, and sends what has waited.
func (s *shard) onActive(from Member, token uint64) {
	if token <= s.to || token <= s.floor {
		return
	}
	s.host, s.to = from, token
	for _, b := range s.withdraw() {
		s.send(b)
	}
}

// withdraw takes out what waits.
func (s *shard) withdraw() []Body {
	waiting := s.buffer
	s.r.waiting -= len(waiting)
	s.r.bytes -= s.bytes
	s.buffer, s.bytes = nil, 0
	return waiting
}

// forget takes the word of a host that its tenure takes nothing any more.
func (s *shard) forget(token uint64) {
	s.floor = max(s.floor, token)
	if s.to <= token {
		s.to = 0
	}
}

// unseen stops sending to a host that is not in view. It may come back with the same tenure, so the floor stays.
func (s *shard) unseen() {
	if s.to != 0 && s.host != s.r.self && !s.r.sees(s.host) {
		s.to = 0
	}
}

// onPause answers how many messages have been sent under the tenure. The answer need not be behind them: the host waits
// until they have come.
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

// onData takes a message under exactly its tenure, in order of its number.
func (s *shard) onData(from Member, d Data) {
	switch {
	case s.phase != Running && s.phase != Flushing || d.Token != s.token:
		s.r.emit(Drop{Shard: s.n})
		s.r.tell(from, NotHere{s.n, d.Token})
	case d.Number <= s.last[from]:
		s.r.emit(Drop{s.n, true})
	default:
		s.last[from] = d.Number
		s.r.emit(Deliver{s.n, s.token, d.Body})
		s.flushed()
	}
}

// asks tells that messages wait for a host that could be asked.
func (s *shard) asks() bool {
	a := s.r.table.entries[s.n]
	return len(s.buffer) > 0 && s.to == 0 && a.Version.N != 0 && a.Home != s.r.self
}

func (s *shard) ask() {
	if s.asks() {
		s.r.tell(s.r.table.entries[s.n].Home, Where{s.n})
	}
}
