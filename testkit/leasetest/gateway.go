package leasetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// gateway keeps a store out of the bubble. Inside, the bubble would wait for the store's
// goroutines. Ferrymen outside the bubble carry out the calls. Virtual time stands still during a
// call, because a goroutine that waits on a channel from outside is not idle.
type gateway struct {
	store leasestore.Store
	idle  chan *ferryman
}

// ferryman executes calls for the bubble. Its channels are created outside, since those of the
// bubble must not be used there.
type ferryman struct {
	call chan func(context.Context)
	done chan struct{}
}

// ferrymen is the maximum number of concurrent calls.
const ferrymen = 16

// realTimeout bounds a call in real time, with room for a busy machine.
const realTimeout = time.Minute

func newGateway(t *testing.T, store leasestore.Store) *gateway {
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

// own returns the store itself, without the gateway.
func (e *env) own() leasestore.Store {
	if g, ok := e.store.(*gateway); ok {
		return g.store
	}
	return e.store
}

// outside runs f outside the bubble. The caller's context cannot be passed on. It can end only
// before or after f, since no virtual time passes during f.
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

func (g *gateway) Load(ctx context.Context,
	name string) (rec leasestore.Record, ver leasestore.Version, err error) {
	if ended := g.outside(ctx, func(ctx context.Context) {
		rec, ver, err = g.store.Load(ctx, name)
	}); ended != nil {
		return rec, ver, ended
	}
	return rec, ver, err
}

func (g *gateway) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (ver leasestore.Version, err error) {
	if ended := g.outside(ctx, func(ctx context.Context) {
		ver, err = g.store.Swap(ctx, name, old, next)
	}); ended != nil {
		return ver, ended
	}
	return ver, err
}

// KeepsSessions returns the answer of the store.
func (g *gateway) KeepsSessions() bool { return keepsSessions(g.store) }

// TokenOf returns the answer of the store.
func (g *gateway) TokenOf(v leasestore.Version) coordination.Token { return given(g.store, v) }

// Remove fails if the store is not a Remover.
func (g *gateway) Remove(ctx context.Context, name string, old leasestore.Version) (err error) {
	r, ok := g.store.(leasestore.Remover)
	if !ok {
		return errors.ErrUnsupported
	}
	if ended := g.outside(ctx, func(ctx context.Context) {
		err = r.Remove(ctx, name, old)
	}); ended != nil {
		return ended
	}
	return err
}

// options makes the operator's actions reach the store behind the gateway.
func (g *gateway) options(o Options) Options {
	through := func(f func(leasestore.Store, string) error) func(leasestore.Store, string) error {
		if f == nil {
			return nil
		}
		return func(_ leasestore.Store, name string) (err error) {
			_ = g.outside(context.Background(), func(context.Context) { err = f(g.store, name) })
			return err
		}
	}
	o.Delete, o.Damage = through(o.Delete), through(o.Damage)
	return o
}
