package sharding

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding/internal/core"
)

// The entities that a shard remembers are a replicated set. A removal may reach the replicas late, when another member has
// the shard, so whoever begins a tenure adds again what it has read: a removal takes out only what its author had seen,
// and it looks under its own tenure.

func (l *life) remembered(shard int) distributeddata.Key[crdt.ORSet[string]] {
	return distributeddata.NewKey("concord-sharding-"+l.cfg.Type+"/entities-"+strconv.Itoa(shard), crdt.ORSet[string]{})
}

// gather is how long changes of what is remembered wait for others, so that many entities are one event.
const gather = 10 * time.Millisecond

// rememberTimeout bounds one read or write at a majority, rememberAgain is the pause after one that has failed.
const (
	rememberTimeout = 3 * time.Second
	rememberAgain   = 200 * time.Millisecond
)

// memory reads and writes what a shard remembers under one tenure, beside all mailboxes.
type memory struct {
	place   *place
	token   uint64
	tenure  context.Context
	check   func() error
	changes []change // guarded by the mutex of the place
	busy    bool     // so is this: a goroutine writes
}

// change adds an entity to what is remembered, or takes it out.
type change struct {
	id     string
	forget bool
}

// tell gives the slot an event of this tenure.
func (m *memory) tell(ev core.SlotEvent) {
	m.place.mu.Lock()
	if m.place.slot != nil && m.place.token == m.token {
		m.place.step(ev)
	}
	m.place.unlock()
}

// recall reads what a majority remembers, and adds it again.
func (m *memory) recall() {
	var ids []string
	ok := m.insist("read", func(ctx context.Context) error {
		set, err := m.key().Get(ctx, m.place.life.data, distributeddata.Linearizable)
		if isNotFound(err) {
			return nil
		}
		for id := range set.All() {
			ids = append(ids, id)
		}
		return err
	})
	if ok && len(ids) > 0 {
		ok = m.write(changes(ids))
	}
	if ok {
		m.tell(core.Recalled{IDs: ids})
	}
}

func changes(ids []string) (out []change) {
	for _, id := range ids {
		out = append(out, change{id, false})
	}
	return out
}

// add notes a change, to be written with others. It needs the mutex of the place.
func (m *memory) add(c change) {
	m.changes = append(m.changes, c)
	if !m.busy {
		m.busy = true
		go m.run()
	}
}

// run writes changes until there are none.
func (m *memory) run() {
	for {
		select {
		case <-time.After(gather):
		case <-m.tenure.Done():
		}
		m.place.mu.Lock()
		batch := m.changes
		m.changes, m.busy = nil, len(batch) > 0
		m.place.mu.Unlock()
		if len(batch) == 0 || !m.write(batch) {
			return
		}
		var ids []string
		for _, c := range batch {
			if !c.forget {
				ids = append(ids, c.id)
			}
		}
		if len(ids) > 0 {
			m.tell(core.Remembered{IDs: ids})
		}
	}
}

// write changes what a majority remembers, under the tenure, and reports whether it has.
func (m *memory) write(batch []change) bool {
	return m.insist("write", func(ctx context.Context) error {
		_, err := m.key().Update(ctx, m.place.life.data, func(w *crdt.Writer, set *crdt.ORSet[string]) error {
			if err := m.check(); err != nil {
				return err
			}
			for _, c := range batch {
				if c.forget {
					set.Remove(w, c.id)
				} else {
					set.Add(w, c.id)
				}
			}
			return nil
		}, distributeddata.Majority)
		return err
	})
}

func (m *memory) key() distributeddata.Key[crdt.ORSet[string]] {
	return m.place.life.remembered(m.place.n)
}

// insist does something again and again while the tenure lasts, and reports whether it was done.
func (m *memory) insist(what string, do func(context.Context) error) bool {
	for k := 0; m.check() == nil; k++ {
		ctx, cancel := context.WithTimeout(m.tenure, rememberTimeout)
		err := do(ctx)
		cancel()
		if err == nil {
			return true
		}
		if k&(k-1) == 0 && m.tenure.Err() == nil { // the 1st, 2nd, 3rd, 5th, 9th, …: no flood of lines
			m.place.log().Warn("remembered entities: no majority", slog.String("call", what), slog.Any("error", err))
		}
		select {
		case <-time.After(rememberAgain):
		case <-m.tenure.Done():
		}
	}
	return false
}

// Forget passivates the entity that handles a message, and lets it be remembered no more: see Config.Remember. It is
// started again by the next message. If the member crashes, or the shard moves, before the others have heard, the entity
// is started again without. Forget reports whether ctx is that of an entity.
func Forget(ctx actor.Context) bool {
	in, ok := ctx.Actor().(*incarnation)
	if ok {
		in.cell.place.passivate(in.cell, true)
	}
	return ok
}
