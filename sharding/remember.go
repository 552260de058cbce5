package sharding

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding/internal/core"
)

// replicated is the RememberStore of a tenure without Config.RememberStore: the entities that a
// shard remembers are a replicated set. It compares neither tokens nor numbers of calls. A removal
// may reach the replicas late, when another member already has the shard, so Load adds again what
// it has read: a removal removes only the additions that its author had seen, and the author checks
// its own tenure. Within a tenure all changes are made at one replica, one after the other.
//
// The name of a set has the number of all shards. If the members had another Config.Shards before,
// each shard takes its entities out of the former sets when it is loaded.
type replicated struct {
	data   *distributeddata.Replicator
	shards int
	check  func() error
}

// layout returns the beginning of the names of the sets for the present number of shards.
func (r replicated) layout(typ string) string {
	return rememberedKeys(typ) + strconv.Itoa(r.shards) + "-"
}

func (r replicated) key(of ShardTenure) distributeddata.Key[crdt.ORSet[string]] {
	return distributeddata.NewKey(r.layout(of.Type)+strconv.Itoa(of.Shard), crdt.ORSet[string]{})
}

// Load implements RememberStore: it returns what a majority remembers.
func (r replicated) Load(ctx context.Context, of ShardTenure) ([]string, error) {
	own := r.key(of)
	set, err := own.Get(ctx, r.data, distributeddata.Linearizable)
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	ids := slices.Collect(set.All())
	former := r.former(of) // this replica now has what a majority had
	if len(ids)+len(former) == 0 {
		return nil, nil
	}
	for _, moved := range former {
		ids = append(ids, moved...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids, distributeddata.Atomically(ctx, r.data, func(tx *distributeddata.Tx) error {
		if err := r.check(); err != nil {
			return err
		}
		now := own.In(tx)
		for _, id := range ids {
			now.Add(tx.Writer, id)
		}
		for key, moved := range former {
			was := key.In(tx)
			for _, id := range moved {
				was.Remove(tx.Writer, id)
			}
		}
		return nil
	}, distributeddata.Majority)
}

// former returns the entities of a shard in the sets of other numbers of shards.
func (r replicated) former(of ShardTenure) map[distributeddata.Key[crdt.ORSet[string]]][]string {
	all, own := rememberedKeys(of.Type), r.layout(of.Type)
	now := r.data.Snapshot()
	out := map[distributeddata.Key[crdt.ORSet[string]]][]string{}
	look := func(from string) {
		for e := range now.Entries(all, from) {
			if strings.HasPrefix(e.Key, own) {
				return
			}
			if e.Gone || e.Atoms == 0 {
				continue
			}
			key := distributeddata.NewKey(e.Key, crdt.ORSet[string]{})
			set, err := key.Of(now)
			if err != nil {
				continue
			}
			for id := range set.All() {
				if shardOf(id, r.shards) == of.Shard {
					out[key] = append(out[key], id)
				}
			}
		}
	}
	look(all)
	look(strings.TrimSuffix(own, "-") + ".") // behind the present sets
	return out
}

// Change implements RememberStore: it changes the set at a majority.
func (r replicated) Change(ctx context.Context, of ShardTenure, add, remove []string) error {
	_, err := r.key(of).Update(ctx, r.data,
		func(w *crdt.Writer, set *crdt.ORSet[string]) error {
			if err := r.check(); err != nil {
				return err
			}
			for _, id := range remove {
				set.Remove(w, id)
			}
			for _, id := range add {
				set.Add(w, id)
			}
			return nil
		}, distributeddata.Majority)
	return err
}

// gather is how long changes of remembered entities wait for others, so that many changes become
// one event.
const gather = 10 * time.Millisecond

// rememberTimeout bounds one call of a RememberStore; rememberAgain is the pause after a failed
// one.
const (
	rememberTimeout = 3 * time.Second
	rememberAgain   = 200 * time.Millisecond
)

// memory reads and writes the remembered entities of a shard in one tenure, outside all mailboxes.
// Its calls of the store follow each other.
type memory struct {
	shard   *hostedShard
	of      ShardTenure // its Seq is that of the last call
	store   RememberStore
	tenure  context.Context
	check   func() error
	changes []change // guarded by the mutex of the shard
	busy    bool     // guarded likewise: a goroutine writes
}

// change adds an entity to the remembered ones, or removes it.
type change struct {
	id     string
	forget bool
	again  bool // it is remembered: the call shows whether the store works
}

// remember begins to read the remembered entities of a tenure. The caller must hold the mutex.
func (s *hostedShard) remember(tenure *coordination.Grant) {
	m := &memory{shard: s,
		of:    ShardTenure{Type: s.binding.cfg.Type, Shard: s.n, Token: tenure.Token()},
		store: s.binding.cfg.RememberStore, tenure: tenure.Context(), check: tenure.Check}
	if m.store == nil {
		m.store = replicated{s.binding.data, s.binding.cfg.Shards, tenure.Check}
	}
	s.memory = m
	go m.recall()
}

// tell passes an event of this tenure to the slot.
func (m *memory) tell(ev core.SlotEvent) {
	m.shard.mu.Lock()
	if m.shard.slot != nil && m.shard.token == uint64(m.of.Token) {
		m.shard.step(ev)
	}
	m.shard.unlock()
}

// recall reads the entities that are remembered.
func (m *memory) recall() {
	var ids []string
	ok := m.insist("load", func(ctx context.Context) (err error) {
		ids, err = m.store.Load(ctx, m.of)
		return err
	})
	if ok {
		m.tell(core.Recalled{IDs: m.own(ids)})
	}
}

// own returns the ids that entities of the shard can have.
func (m *memory) own(ids []string) []string {
	var first error
	own := make([]string, 0, len(ids))
	for _, id := range ids {
		err := checkID(id)
		if err == nil {
			err = m.shard.owns(id)
		}
		if err == nil {
			own = append(own, id)
		} else if first == nil {
			first = err
		}
	}
	if first != nil {
		m.shard.log().Warn("remembered entities ignored: their ids are invalid or belong to another shard", slog.Any("error", first),
			slog.Int("ignored", len(ids)-len(own)))
	}
	return own
}

// add records a change, to be written together with others. The caller must hold the mutex of the
// shard.
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
		m.shard.mu.Lock()
		batch := m.changes
		m.changes, m.busy = nil, len(batch) > 0
		m.shard.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		add, remove, fresh := last(batch)
		if !m.insist("change", func(ctx context.Context) error {
			return m.store.Change(ctx, m.of, add, remove)
		}) {
			return
		}
		if len(fresh) > 0 {
			m.tell(core.Remembered{IDs: fresh})
		}
	}
}

// last returns the ids to add and to remove according to the last change of each, and those of the
// added ones for which entities wait.
func last(batch []change) (add, remove, fresh []string) {
	at := map[string]int{}
	for i, c := range batch {
		at[c.id] = i
	}
	for i, c := range batch {
		switch {
		case at[c.id] != i:
		case c.forget:
			remove = append(remove, c.id)
		case c.again:
			add = append(add, c.id)
		default:
			add, fresh = append(add, c.id), append(fresh, c.id)
		}
	}
	return add, remove, fresh
}

// insist repeats a call of the store while the tenure lasts, and reports whether it succeeded.
func (m *memory) insist(what string, do func(context.Context) error) bool {
	for m.check() == nil {
		m.of.Seq++
		ctx, cancel := context.WithTimeout(m.tenure, rememberTimeout)
		err := contained(func() error { return do(ctx) })
		cancel()
		if err == nil || m.tenure.Err() == nil {
			b := m.shard.binding
			if b.breaker.called(b.clock.Now(), m.of.Shard, err) {
				m.failed(what, err)
			}
		}
		if err == nil {
			return true
		}
		select {
		case <-time.After(rememberAgain):
		case <-m.tenure.Done():
		}
	}
	return false
}

// failed logs that a call of the store has failed. It often fails for all shards of a
// member at once.
func (m *memory) failed(what string, err error) {
	binding := m.shard.binding
	unlogged, due := binding.recalls.Due(binding.clock.Now(), quiet)
	if !due {
		return
	}
	m.shard.log().Warn("remembered entities: no majority, or the store fails",
		slog.String("call", what), slog.Any("error", err), slog.Int("unlogged", unlogged))
}

// Forget passivates the entity that handles a message, and stops remembering it; see
// Config.Remember. The next message starts it again. If the member crashes or the shard moves
// before the change has been stored, the entity is started again without a message. Forget reports
// whether ctx belongs to an entity.
func Forget(ctx actor.Context) bool {
	in := incarnationOf(ctx)
	if in != nil {
		in.shard.passivate(in, true)
	}
	return in != nil
}
