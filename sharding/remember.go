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

// The entities that a shard remembers are a replicated set. A removal may reach the replicas late,
// when another member already has the shard, so a member that begins a tenure adds again what it
// has read: a removal removes only the additions that its author had seen, and the author checks
// its own tenure.

func (l *life) remembered(shard int) distributeddata.Key[crdt.ORSet[string]] {
	return distributeddata.NewKey("concord-sharding-"+l.cfg.Type+"/entities-"+strconv.Itoa(shard),
		crdt.ORSet[string]{})
}

// gather is how long changes of remembered entities wait for others, so that many changes become
// one event.
const gather = 10 * time.Millisecond

// rememberTimeout bounds one majority read or write; rememberAgain is the pause after a failed one.
const (
	rememberTimeout = 3 * time.Second
	rememberAgain   = 200 * time.Millisecond
)

// memory reads and writes the remembered entities of a shard in one tenure, outside all mailboxes.
type memory struct {
	place   *place
	token   uint64
	tenure  context.Context
	check   func() error
	changes []change // guarded by the mutex of the place
	busy    bool     // guarded likewise: a goroutine writes
}

// change adds an entity to the remembered ones, or removes it.
type change struct {
	id     string
	forget bool
}

// tell passes an event of this tenure to the slot.
func (m *memory) tell(ev core.SlotEvent) {
	m.place.mu.Lock()
	if m.place.slot != nil && m.place.token == m.token {
		m.place.step(ev)
	}
	m.place.unlock()
}

// recall reads the entities that a majority remembers, and adds them again.
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

// add records a change, to be written together with others. The caller must hold the mutex of the
// place.
func (m *memory) add(c change) {
	m.changes = append(m.changes, c)
	if !m.busy {
		m.busy = true
		go m.run()
	}
}

// run writes changes until there are none left.
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

// write applies changes at a majority within the tenure, and reports whether it succeeded.
func (m *memory) write(batch []change) bool {
	return m.insist("write", func(ctx context.Context) error {
		_, err := m.key().Update(ctx, m.place.life.data,
			func(w *crdt.Writer, set *crdt.ORSet[string]) error {
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

// insist retries do while the tenure lasts, and reports whether it succeeded.
func (m *memory) insist(what string, do func(context.Context) error) bool {
	for k := 0; m.check() == nil; k++ {
		ctx, cancel := context.WithTimeout(m.tenure, rememberTimeout)
		err := do(ctx)
		cancel()
		if err == nil {
			return true
		}
		if k&(k-1) == 0 && m.tenure.Err() == nil { // the 1st, 2nd, 3rd, 5th, 9th, …: bounds the log
			m.place.log().Warn("remembered entities: no majority", slog.String("call", what),
				slog.Any("error", err))
		}
		select {
		case <-time.After(rememberAgain):
		case <-m.tenure.Done():
		}
	}
	return false
}

// Forget passivates the entity that handles a message, and stops remembering it; see
// Config.Remember. The next message starts it again. If the member crashes or the shard moves
// before the change has reached the other members, the entity is started again without a message.
// Forget reports whether ctx belongs to an entity.
func Forget(ctx actor.Context) bool {
	in, ok := ctx.Actor().(*incarnation)
	if ok {
		in.cell.place.passivate(in.cell, true)
	}
	return ok
}
