// Package gate tells the components of a member whether guarded work, that is singletons and
// shards, may run there.
//
// The gate is open unless something holds it shut: a node guard that was lost, or an arbiter lease
// held by another fragment of the cluster. Package node shuts and releases the gate. Components
// subscribe to it, stop their work while it is shut, and let other members take over.
package gate

import (
	"maps"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"

	"github.com/concord-go/concord/internal/contain"
)

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// registering guards our slot in the registry of every system, which is not synchronised.
var registering sync.Mutex

// Gate is the gate of one actor system. It is safe for concurrent use.
type Gate struct {
	system *actor.ActorSystem

	mu struct {
		sync.Mutex
		held map[string]string // reasons, by holder
		to   []*actor.PID
	}
}

// State is the state of a gate and the message to subscribers. It is immutable.
type State struct {
	// Open means that guarded work may run.
	Open bool
	// Why lists, in readable form and sorted, what holds the gate shut; it is empty while the gate
	// is open.
	Why []string
}

// ExtensionID implements extensions.Extension.
func (*Gate) ExtensionID() extensions.ExtensionID { return extensionID }

// Of returns the gate of system, which is initially open.
func Of(system *actor.ActorSystem) *Gate {
	registering.Lock()
	defer registering.Unlock()
	if g, ok := system.Extensions.Get(extensionID).(*Gate); ok {
		return g
	}
	g := &Gate{system: system}
	g.mu.held = map[string]string{}
	system.Extensions.Register(g)
	return g
}

// Shut holds the gate shut in the name of by until Let(by). It notifies subscribers if the gate was
// open.
func (g *Gate) Shut(by, why string) { g.change(func() { g.mu.held[by] = why }) }

// Let reverts Shut. It notifies subscribers if nothing else holds the gate shut.
func (g *Gate) Let(by string) { g.change(func() { delete(g.mu.held, by) }) }

func (g *Gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := len(g.mu.held) == 0
	f()
	if s := g.state(); s.Open != was {
		for _, pid := range g.mu.to {
			contain.Send(g.system, pid, s)
		}
	}
}

// State returns the current state.
func (g *Gate) State() *State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state()
}

func (g *Gate) state() *State {
	return &State{Open: len(g.mu.held) == 0, Why: slices.Sorted(maps.Values(g.mu.held))}
}

// Subscribe sends the current *State and each later one to pid, a local actor, in order.
func (g *Gate) Subscribe(pid *actor.PID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.ContainsFunc(g.mu.to, pid.Equal) {
		g.mu.to = append(g.mu.to, pid)
	}
	contain.Send(g.system, pid, g.state())
}

// Unsubscribe reverts Subscribe. A state may still be in the mailbox of pid.
func (g *Gate) Unsubscribe(pid *actor.PID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.to = slices.DeleteFunc(g.mu.to, pid.Equal)
}
