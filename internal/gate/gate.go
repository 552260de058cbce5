// Package gate tells the components of a member whether guarded work may run there: singletons and shards.
//
// The gate is open unless something holds it shut: a node guard that was lost, or an arbiter lease that another
// fragment of the cluster has. Package node holds and lets go; components subscribe, stop their work when it is
// shut, and let others do it meanwhile.
package gate

import (
	"maps"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// extensionID is taken once per process: the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// registering guards our slot of every system's registry, which is not synchronised.
var registering sync.Mutex

// Gate is that of one actor system. Its methods may be called from any goroutine.
type Gate struct {
	system *actor.ActorSystem

	mu struct {
		sync.Mutex
		held map[string]string // reasons, by who holds it
		to   []*actor.PID
	}
}

// State of a gate, also the message to subscribers. It is immutable.
type State struct {
	// Open says that guarded work may run.
	Open bool
	// Why says for people what holds the gate shut, sorted; empty while it is open.
	Why []string
}

// ExtensionID implements extensions.Extension.
func (*Gate) ExtensionID() extensions.ExtensionID { return extensionID }

// Of returns the gate of system, open at first.
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

// Shut holds the gate shut in the name of by until Let(by). Subscribers are told if it was open.
func (g *Gate) Shut(by, why string) { g.change(func() { g.mu.held[by] = why }) }

// Let ends Shut. Subscribers are told if nothing else holds it.
func (g *Gate) Let(by string) { g.change(func() { delete(g.mu.held, by) }) }

func (g *Gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := len(g.mu.held) == 0
	f()
	if s := g.state(); s.Open != was {
		for _, pid := range g.mu.to {
			g.system.Root.Send(pid, s)
		}
	}
}

// State returns the present state.
func (g *Gate) State() *State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state()
}

func (g *Gate) state() *State {
	return &State{Open: len(g.mu.held) == 0, Why: slices.Sorted(maps.Values(g.mu.held))}
}

// Subscribe sends *State to pid, a local actor: the present one now, and each later change, in order.
func (g *Gate) Subscribe(pid *actor.PID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.ContainsFunc(g.mu.to, pid.Equal) {
		g.mu.to = append(g.mu.to, pid)
	}
	g.system.Root.Send(pid, g.state())
}

// Unsubscribe ends Subscribe. A state may still be in the mailbox of pid.
func (g *Gate) Unsubscribe(pid *actor.PID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.to = slices.DeleteFunc(g.mu.to, pid.Equal)
}
