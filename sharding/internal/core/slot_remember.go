package core

// remembers is the part of a Slot that keeps entities running, with or without messages, once they
// have received one.
//
// Invariant: an entity has an incarnation only if this tenure has read the entity at a majority or
// written it there.
type remembers struct {
	recalled bool // the entities stored at a majority were read
	known    map[string]bool
}

// await makes messages wait until their entity is remembered. Nothing is written before the stored
// entities were read: the entity may be among them.
func (s *Slot) await(e *entity) {
	e.state = unknown
	s.rest.add(e)
	if s.recalled {
		s.emit(Remember{e.id})
	}
}

// recall starts the remembered entities, and writes the others for which messages wait. While the
// shard is given up, it starts no entity without messages.
func (s *Slot) recall(ids []string) {
	if s.recalled || s.killed {
		return
	}
	s.recalled = true
	for _, id := range ids {
		s.known[id] = true
	}
	for e := s.rest.first; e != nil; {
		next := e.next
		if e.state == unknown {
			if s.known[e.id] {
				s.start(e)
			} else {
				s.emit(Remember{e.id})
			}
		}
		e = next
	}
	for _, id := range ids {
		if s.entities[id] == nil && !s.stopping {
			e := &entity{id: id}
			s.entities[id] = e
			s.start(e)
		}
	}
}

func (s *Slot) onRemembered(ids []string) {
	if s.killed {
		return
	}
	for _, id := range ids {
		s.known[id] = true
		if e := s.entities[id]; e != nil && e.state == unknown {
			s.start(e)
		}
	}
}

// dismiss ends an entity that asked to be forgotten. If messages have arrived since, it starts
// anew.
func (s *Slot) dismiss(e *entity) {
	delete(s.known, e.id)
	s.emit(Forget{e.id})
	if len(e.waiting) == 0 {
		s.remove(e)
		return
	}
	e.forget = false
	s.await(e)
}
