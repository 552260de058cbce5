package members

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/sharding"
)

// refusing is a lease store whose calls fail, or its writes alone, until it is released.
type refusing struct {
	file.Store
	reads, released atomic.Bool // reads succeed; all calls do
}

var errRefusing = errors.New("connection refused by the test")

// store opens the lease store. A line on the standard input releases it.
func (s *whole) store() (coordination.Store, error) {
	opened, err := file.Open(s.Dir)
	if err != nil || s.Refuses == "" {
		return opened, err
	}
	r := &refusing{Store: opened}
	r.reads.Store(s.Refuses == "writes")
	go func() {
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
			r.released.Store(true)
		}
	}()
	return r, nil
}

func (r *refusing) fails(reads bool) error {
	if r.released.Load() || reads && r.reads.Load() {
		return nil
	}
	return errRefusing
}

// Load implements leasestore.Store.
func (r *refusing) Load(ctx context.Context, name string) (leasestore.Record, leasestore.Version,
	error) {
	if err := r.fails(true); err != nil {
		return leasestore.Record{}, "", err
	}
	return r.Store.Load(ctx, name)
}

// Watch implements leasestore.Watcher.
func (r *refusing) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	if err := r.fails(true); err != nil {
		return func(yield func(leasestore.Record, error) bool) { yield(leasestore.Record{}, err) }
	}
	return r.Store.Watch(ctx, name)
}

// Swap implements leasestore.Store.
func (r *refusing) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := r.fails(false); err != nil {
		return "", err
	}
	return r.Store.Swap(ctx, name, old, next)
}

// marked is an entity that keeps a file while it runs. It says so if another one has it.
type marked struct {
	sharding.Entity
	dir string // "": no file
}

// Receive implements actor.Actor.
func (m *marked) Receive(ctx actor.Context) {
	name := filepath.Join(m.dir, m.ID)
	switch ctx.Message().(type) {
	case *actor.Started:
		if m.dir == "" {
			return
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			fmt.Println("double")
			return
		}
		_ = f.Close()
	case *actor.Stopping:
		if m.dir != "" {
			_ = os.Remove(name)
		}
	}
}

// countShards prints how many shards are active in this process, whenever that has changed.
func (s *whole) countShards(ctx context.Context, r *sharding.Region[*wrapperspb.StringValue]) {
	for last := -1; ; {
		n := 0
		for _, shard := range r.Status().Shards {
			if shard.State == sharding.Active {
				n++
			}
		}
		if n != last {
			fmt.Println("active", s.Index, n)
		}
		last = n
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// untilHosts waits until the numbers of active shards of the members are as wanted.
func (c *wholeCluster) untilHosts(ok func(n map[int]int) bool) {
	c.Helper()
	for late := time.After(2 * patience); !ok(c.hosts); {
		select {
		case word := <-c.heard:
			c.hear(word)
		case <-late:
			require.Fail(c, "not in time", "%v", c.hosts)
		}
	}
}

// TestRun_AMemberWithoutTheLeaseStoreHostsNoShards starts four members, of which one cannot reach
// the lease store and one may only read it. The others host all shards. When the store answers
// these two, they host shards as well. No entity runs twice.
func TestRun_AMemberWithoutTheLeaseStoreHostsNoShards(t *testing.T) {
	c := newWhole(t, 4)
	marks := t.TempDir()
	var all []*child.Process
	for i := range c.specs {
		c.specs[i].Talks, c.specs[i].Marks = true, marks
	}
	c.specs[2].Refuses, c.specs[3].Refuses = "calls", "writes"
	for i := range c.specs {
		all = append(all, c.start(i))
	}
	c.untilHosts(func(n map[int]int) bool {
		return n[0]+n[1] == 16 && n[2] == 0 && n[3] == 0
	})
	for _, p := range all[2:] {
		require.NoError(t, p.Say("answer"))
	}
	c.untilHosts(func(n map[int]int) bool {
		return n[0]+n[1]+n[2]+n[3] == 16 && n[0] > 0 && n[1] > 0 && n[2] > 0 && n[3] > 0
	})
	running, err := os.ReadDir(marks)
	require.NoError(t, err)
	require.NotEmpty(t, running)
	for _, p := range all {
		c.stop(p)
	}
	for len(c.heard) > 0 {
		c.hear(<-c.heard)
	}
	require.Zero(t, c.said["double"])
	left, err := os.ReadDir(marks)
	require.NoError(t, err)
	require.Empty(t, left, "entities that have not stopped")
}
