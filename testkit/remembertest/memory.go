package remembertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/concord-go/concord/coordination"
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
	token coordination.Token
	ids   map[string]struct{}
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

// enterLocked returns the content of a shard, unless a later tenure has begun.
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
	if of.Token < c.token {
		return nil, fmt.Errorf("shard %d of %q: token %v after %v: %w", of.Shard, of.Type, of.Token,
			c.token, fence.ErrStale)
	}
	c.token = of.Token
	return c, nil
}
