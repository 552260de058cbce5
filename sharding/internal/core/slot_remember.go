package core

import "time"

// remembers is the part of a Slot that keeps entities running, with or without messages, once they
// have received one.
//
// Invariant: an entity has an incarnation only if this tenure has read the entity at a majority or
// written it there.
type remembers struct {
	recalled bool // the entities stored at a majority were read
	known    map[string]bool

	pending []string      // read, and to be started without messages [S16e]
	turn    time.Duration // when the next of them are started
	share   int           // how many of them
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
	if s.recalled || s.stoppedNow {
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
	if s.stopping {
		return
	}
	s.pending = ids
	if s.cfg.Pace == nil {
		s.revive(len(ids))
		return
	}
	s.schedule()
	s.resume()
}

// schedule requests a turn for the entities that are pending.
func (s *Slot) schedule() {
	if len(s.pending) > 0 {
		at, share := s.cfg.Pace.Turn(s.epoch.Add(s.now), len(s.pending))
		s.turn, s.share = at.Sub(s.epoch), share
	}
}

// resume starts pending entities whose turn has come.
func (s *Slot) resume() {
	for len(s.pending) > 0 && s.now >= s.turn {
		s.revive(s.share)
		s.schedule()
	}
}

// revive starts at most n pending entities. Those that messages have started, or that were
// forgotten since, are not pending any more.
func (s *Slot) revive(n int) {
	for ; n > 0 && len(s.pending) > 0; s.pending = s.pending[1:] {
		id := s.pending[0]
		if s.entities[id] != nil || !s.known[id] {
			continue
		}
		s.start(s.enter(id))
		n--
	}
}

func (s *Slot) onRemembered(ids []string) {
	if s.stoppedNow {
		return
	}
	for _, id := range ids {
		s.known[id] = true
		if e := s.entities[id]; e != nil && e.state == unknown {
			s.start(e)
		}
	}
}

// Remembered returns an entity that runs, and is therefore remembered, if there is one.
func (s *Slot) Remembered() (id string, ok bool) {
	if e := s.used.first; e != nil {
		return e.id, true
	}
	return "", false
}

// dismiss ends an entity that asked to be forgotten. If messages have arrived since, it starts
// anew.
func (s *Slot) dismiss(e *entity) {
	delete(s.known, e.id)
	s.emit(Forget{e.id})
	if len(s.waiting[e.id]) == 0 {
		s.remove(e)
		return
	}
	e.forget = false
	s.await(e)
}
