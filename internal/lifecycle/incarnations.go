package lifecycle

import (
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// ErrRejoining is returned by a call on a handle if the context of the call ends while the member
// is between two incarnations.
var ErrRejoining = errors.New(
	"rejoining the cluster: the member was split off and is between two incarnations")

// Incarnations holds what a process keeps from one incarnation of its member to the next: the
// handles of its components, by name. An incarnation is an actor system with its member id; a
// member that was split off from its cluster ends one incarnation and begins another. Package node
// creates one Incarnations per Run, and attaches it to the system of each incarnation.
//
// A component that finds its handle here binds it to the new system and returns it again, so that a
// handle kept by the application works in every incarnation.
type Incarnations struct {
	// MinMembers is how many members begin the cluster, as the process states it for all
	// components; 0 if it does not. It is not changed after Attach.
	MinMembers int

	mu struct {
		sync.Mutex
		handles map[string]any
		last    moment
		end     moment
	}
}

// moment is a one-time event. The lock of its Incarnations guards it.
type moment struct {
	come bool
	then []func() // called when the event happens
}

// on calls f when the event happens, or at once if it has happened.
func (l *Incarnations) on(m *moment, f func()) {
	l.mu.Lock()
	if !m.come {
		m.then = append(m.then, f)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	f()
}

// come makes the event happen. Later calls do nothing.
func (l *Incarnations) come(m *moment) {
	l.mu.Lock()
	then := m.then
	m.then, m.come = nil, true
	if l.mu.end.come {
		clear(l.mu.handles)
	}
	l.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// incarnationsID is allocated once per process, since the registry has room for a hundred.
var incarnationsID = extensions.NextExtensionID()

// ExtensionID implements extensions.Extension.
func (*Incarnations) ExtensionID() extensions.ExtensionID { return incarnationsID }

// NewIncarnations returns the Incarnations of a new process.
func NewIncarnations() *Incarnations {
	l := &Incarnations{}
	l.mu.handles = map[string]any{}
	return l
}

// Attach makes system the next incarnation. Call it before any component is created on it.
func (l *Incarnations) Attach(system *actor.ActorSystem) {
	registering.Lock()
	defer registering.Unlock()
	system.Extensions.Register(l)
}

// IncarnationsOf returns the Incarnations attached to system, or nil if the member of system has
// only one incarnation.
func IncarnationsOf(system *actor.ActorSystem) *Incarnations {
	registering.Lock()
	defer registering.Unlock()
	l, _ := system.Extensions.Get(incarnationsID).(*Incarnations)
	return l
}

// MinMembers returns how many members begin the cluster, as the process of system states it, or 0.
func MinMembers(system *actor.ActorSystem) int {
	if l := IncarnationsOf(system); l != nil {
		return l.MinMembers
	}
	return 0
}

// Handle returns the handle kept under name by an earlier incarnation. If there is none, it returns
// and keeps the handle created by fresh. Without Incarnations on the system it always calls fresh.
// Handle returns the error of fresh, ErrStopping after End, or an error if the kept handle has
// another type.
func Handle[T any](system *actor.ActorSystem, name string, fresh func() (T, error)) (handle T,
	kept bool, err error) {
	l := IncarnationsOf(system)
	if l == nil {
		handle, err = fresh()
		return handle, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.end.come {
		return handle, false, ErrStopping
	}
	if old, ok := l.mu.handles[name]; ok {
		if handle, ok = old.(T); !ok {
			return handle, false, fmt.Errorf("lifecycle: %s is a %T in an earlier incarnation", name, old)
		}
		return handle, true, nil
	}
	if handle, err = fresh(); err == nil {
		l.mu.handles[name] = handle
	}
	return handle, false, err
}

// OnLast registers f to be called once by Last. After Last, it calls f at once.
func (l *Incarnations) OnLast(f func()) { l.on(&l.mu.last, f) }

// Last declares that the current incarnation, which is about to stop, is the last one: components
// leave the cluster permanently. Handles continue to work until they have stopped. Later calls do
// nothing.
func (l *Incarnations) Last() { l.come(&l.mu.last) }

// OnEnd registers f to be called once by End. After End, it calls f at once.
func (l *Incarnations) OnEnd(f func()) { l.on(&l.mu.end, f) }

// End declares that there is no next incarnation: calls that wait for one return. Later calls do
// nothing.
func (l *Incarnations) End() { l.come(&l.mu.end) }
