package guard

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// strangers bounds what peers that are not members take of this member, all of them together: a
// stranger can open any number of streams under any number of addresses.
type strangers struct {
	mu       sync.Mutex
	watches  watches
	foreign  map[string]struct{} // foreign sender addresses
	counting time.Time           // since when
	seen     map[string]time.Time
}

// since returns when a peer that is not listed was first seen, since it was last listed.
func (s *strangers) since(peer string, listed bool, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if listed {
		delete(s.seen, peer)
		return now
	}
	if at, ok := s.seen[peer]; ok {
		return at
	}
	if s.seen == nil || len(s.seen) >= maxStrange {
		s.seen = map[string]time.Time{}
	}
	s.seen[peer] = now
	return now
}

// foreignFor is how long foreign sender addresses of strangers count: about as long as Proto.Actor
// tries to reach one.
const foreignFor = time.Minute

// names reports whether a stranger may name a sender address that neither it nor a member has.
func (s *strangers) names(address string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.counting) >= foreignFor {
		s.foreign, s.counting = map[string]struct{}{}, now
	}
	return nameForeign(s.foreign, address)
}

// nameForeign reports whether address is among at most maxForeign addresses, and adds it if there
// is room.
func nameForeign(all map[string]struct{}, address string) bool {
	if _, ok := all[address]; ok {
		return true
	}
	if len(all) >= maxForeign || !isAddress(address) {
		return false
	}
	all[address] = struct{}{}
	return true
}

// watch records a watch of a stranger. It returns false if strangers have too many. A watch counts
// until its target stops: Proto.Actor keeps the watches of peers that are gone.
func (s *strangers) watch(watcher *actor.PID, target string, lives func(id string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches.add(watcher, target, lives)
}

func (s *strangers) unwatch(watcher *actor.PID, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches.remove(watcher, target)
}
