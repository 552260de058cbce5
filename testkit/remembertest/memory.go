package remembertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/sharding"
)

// Memory is a sharding.RememberStore for tests: members of one process share it. The zero value is
// empty.
type Memory struct {
	mu     sync.Mutex
	shards map[shard]*content
}

type shard struct {
	typ    string
	number int
}

type content struct {
	last sharding.ShardTenure // the youngest call
	ids  map[string]struct{}
}

// Load implements sharding.RememberStore.
func (m *Memory) Load(ctx context.Context, of sharding.ShardTenure) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.enterLocked(ctx, of)
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Keys(c.ids)), nil
}

// Change implements sharding.RememberStore.
func (m *Memory) Change(ctx context.Context, of sharding.ShardTenure, add, remove []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.enterLocked(ctx, of)
	if err != nil {
		return err
	}
	for _, id := range remove {
		delete(c.ids, id)
	}
	for _, id := range add {
		c.ids[id] = struct{}{}
	}
	return nil
}

// enterLocked returns the content of a shard, unless the call is older than another one.
func (m *Memory) enterLocked(ctx context.Context, of sharding.ShardTenure) (*content, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if m.shards == nil {
		m.shards = map[shard]*content{}
	}
	at := shard{of.Type, of.Shard}
	c := m.shards[at]
	if c == nil {
		c = &content{ids: map[string]struct{}{}}
		m.shards[at] = c
	}
	if of.Token < c.last.Token || of.Token == c.last.Token && of.Seq < c.last.Seq {
		return nil, fmt.Errorf("shard %d of %q: call %d of token %v after call %d of %v: %w",
			of.Shard, of.Type, of.Seq, of.Token, c.last.Seq, c.last.Token, fence.ErrStale)
	}
	c.last = of
	return c, nil
}
