package leasetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

// gateway keeps a store out of the bubble: its goroutines would be taken for ones that the bubble waits
// for, or that wait for the bubble. Calls are carried out by ferrymen that live outside. Virtual time
// stands still meanwhile, for a goroutine that waits on a channel from outside is not idle.
type gateway struct {
	store coordination.Store
	idle  chan *ferryman
}

// ferryman makes calls for the bubble. Its channels are made outside: those of the bubble must not be
// touched there.
type ferryman struct {
	call chan func(context.Context)
	done chan struct{}
}

// ferrymen bounds the calls at one time.
const ferrymen = 16

// realTimeout bounds a call in real time: on a busy machine, or before a test fails.
const realTimeout = time.Minute

func newGateway(t *testing.T, store coordination.Store) *gateway {
	g := &gateway{store: store, idle: make(chan *ferryman, ferrymen)}
	var wg sync.WaitGroup
	all := make([]*ferryman, ferrymen)
	for i := range all {
		f := &ferryman{make(chan func(context.Context)), make(chan struct{})}
		all[i] = f
		g.idle <- f
		wg.Go(func() {
			for call := range f.call {
				ctx, cancel := context.WithTimeout(context.Background(), realTimeout)
				call(ctx)
				cancel()
				f.done <- struct{}{}
			}
		})
	}
	t.Cleanup(func() {
		for _, f := range all {
			close(f.call)
		}
		wg.Wait()
	})
	return g
}

// own is the store itself, wherever it is.
func (e *env) own() coordination.Store {
	if g, ok := e.store.(*gateway); ok {
		return g.store
	}
	return e.store
}

// outside runs f beyond the bubble. The context of the caller cannot be taken along; it can end only
// before or after, since no virtual time passes.
func (g *gateway) outside(ctx context.Context, f func(context.Context)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := <-g.idle
	m.call <- f
	<-m.done
	g.idle <- m
	return nil
}

func (g *gateway) Load(ctx context.Context, name string) (rec coordination.Record, ver coordination.Version, err error) {
	if ended := g.outside(ctx, func(ctx context.Context) { rec, ver, err = g.store.Load(ctx, name) }); ended != nil {
		return rec, ver, ended
	}
	return rec, ver, err
}

func (g *gateway) Swap(ctx context.Context, name string, old coordination.Version, next coordination.Record) (ver coordination.Version, err error) {
	if ended := g.outside(ctx, func(ctx context.Context) { ver, err = g.store.Swap(ctx, name, old, next) }); ended != nil {
		return ver, ended
	}
	return ver, err
}

// KeepsSessions asks the store.
func (g *gateway) KeepsSessions() bool { return keepsSessions(g.store) }

// TokenOf asks the store.
func (g *gateway) TokenOf(v coordination.Version) coordination.Token { return given(g.store, v) }

// Remove fails where the store is no Remover.
func (g *gateway) Remove(ctx context.Context, name string, old coordination.Version) (err error) {
	r, ok := g.store.(coordination.Remover)
	if !ok {
		return errors.ErrUnsupported
	}
	if ended := g.outside(ctx, func(ctx context.Context) { err = r.Remove(ctx, name, old) }); ended != nil {
		return ended
	}
	return err
}

// options lets what an operator does reach the store behind the gateway.
func (g *gateway) options(o Options) Options {
	through := func(f func(coordination.Store, string) error) func(coordination.Store, string) error {
		if f == nil {
			return nil
		}
		return func(_ coordination.Store, name string) (err error) {
			_ = g.outside(context.Background(), func(context.Context) { err = f(g.store, name) })
			return err
		}
	}
	o.Delete, o.Damage = through(o.Delete), through(o.Damage)
	return o
}
