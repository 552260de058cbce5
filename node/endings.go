package node

import (
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
)

// endings knows which streams of remoting Proto.Actor has given up itself. It gives up the stream
// to an address when it publishes an EndpointTerminatedEvent with this address, and publishes one
// when a stream ends, also if it has given it up already: then the event ends the next stream to
// the address, with the messages that wait there, and that stream the next one. So the end of a
// stream that was given up must not be reported.
type endings struct {
	mu   sync.Mutex
	open map[string][]*ending // by address
}

// ending is what is known about one stream.
type ending struct {
	givenUp []string // by the systems at these addresses; guarded by endings.mu
}

// ends is shared by all incarnations: a connector does not know its actor system before the stream
// begins.
var ends endings

// watch notes the events of a system until it is shut down. It must be called before remoting
// starts, so that it knows of an event before the stream ends.
func (e *endings) watch(system *actor.ActorSystem) {
	system.EventStream.Subscribe(func(event any) {
		if t, ok := event.(*remote.EndpointTerminatedEvent); ok {
			e.giveUp(system.Address(), t.Address)
		}
	})
}

func (e *endings) giveUp(from, address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.open[address] {
		if !slices.Contains(s.givenUp, from) {
			s.givenUp = append(s.givenUp, from)
		}
	}
}

// begin adds a stream that is being opened.
func (e *endings) begin(address string) *ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = map[string][]*ending{}
	}
	s := &ending{}
	e.open[address] = append(e.open[address], s)
	return s
}

// end removes a stream.
func (e *endings) end(address string, s *ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := slices.DeleteFunc(e.open[address], func(o *ending) bool { return o == s })
	if e.open[address] = left; len(left) == 0 {
		delete(e.open, address)
	}
}

// by reports whether the system at an address has given a stream up.
func (e *endings) by(from string, s *ending) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(s.givenUp, from)
}
