package core

// inbox is what the host of a shard remembers of deliveries during one tenure: those that wait for
// their entity, and the last that were handled. It prevents most duplicates, but not all: it is not
// passed on to the next tenure, and it forgets.
//
// Invariant: len(handled) <= Config.Handled, and each other key of accepted is of a message that
// the entities of this tenure have and for which Handled has not come.
type inbox struct {
	accepted map[deliveryID]bool // whether it was handled
	handled  []deliveryID        // ring
	next     int                 // index of the oldest in a full ring
}

type deliveryID struct {
	from   Member
	number uint64
}

// accept passes a delivery to its entity. One that waits for its entity already is dropped, and one
// that was handled is confirmed again.
func (s *shard) accept(from Member, b Body, number uint64, again bool) {
	id := deliveryID{from, number}
	if handled, known := s.accepted[id]; known {
		s.r.emit(Drop{Shard: s.n, Repeated: true})
		if handled {
			s.confirm(from, number)
		}
		return
	}
	if s.accepted == nil {
		s.accepted = map[deliveryID]bool{}
	}
	s.accepted[id] = false
	s.r.emit(Deliver{Shard: s.n, Token: s.token, Body: b, Receipt: Receipt{from, number, again}})
}

// onHandled confirms a delivery that was handled, also after its shard was given up. One that was
// not handled is accepted when it is sent again.
func (s *shard) onHandled(ev Handled) {
	id := deliveryID{ev.From, ev.Number}
	if _, known := s.accepted[id]; known && ev.Token == s.token {
		if ev.OK {
			s.remember(id)
		} else {
			delete(s.accepted, id)
		}
	}
	if ev.OK {
		s.confirm(ev.From, ev.Number)
	}
}

// remember records a handled delivery, in place of the oldest one if there are too many.
func (s *shard) remember(id deliveryID) {
	s.accepted[id] = true
	if len(s.handled) < s.r.cfg.Handled {
		s.handled = append(s.handled, id)
		return
	}
	delete(s.accepted, s.handled[s.next])
	s.handled[s.next] = id
	s.next = (s.next + 1) % len(s.handled)
}

func (s *shard) confirm(to Member, number uint64) {
	if to == s.r.self {
		s.onConfirm(number)
		return
	}
	s.r.tell(to, Confirm{s.n, number})
}
