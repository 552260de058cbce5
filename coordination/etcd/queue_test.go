//go:build stores

package etcd_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/concord-go/concord/coordination/leasestore"
)

func place(nonce string, beat uint64) leasestore.Waiter {
	return leasestore.Waiter{Nonce: nonce, Beat: beat, TTL: time.Minute}
}

// TestQueue_IsBounded: one of the first places, written again and again, survives the bound.
func TestQueue_IsBounded(t *testing.T) {
	const most, many = 256, 300
	client, keys := connect(t, server(t)), prefix(t)
	s := open(t, client, keys)
	for i := range uint64(many) {
		_, err := s.Enqueue(t.Context(), name, place(fmt.Sprint("dead ", i), 1))
		must(t, err)
		if ahead, err := s.Enqueue(t.Context(), name, place("alive", i+1)); err != nil ||
			len(ahead) > 1 {
			t.Fatalf("after %d: behind %v, %v", i, ahead, err)
		}
	}
	r, err := client.Get(t.Context(), keys+",queue/", clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	must(t, err)
	if r.Count != most {
		t.Errorf("%d places", r.Count)
	}
	ahead, err := s.Enqueue(t.Context(), name, place("late", 1))
	must(t, err)
	if len(ahead) != most-1 || !slices.Contains(ahead, place("alive", many)) ||
		slices.Contains(ahead, place("dead 0", 1)) {
		t.Errorf("behind %d: %v", len(ahead), ahead)
	}
	must(t, s.Leave(t.Context(), name, ahead))
	if ahead, err = s.Enqueue(t.Context(), name, place("late", 2)); err != nil || len(ahead) != 0 {
		t.Errorf("behind %v, %v", ahead, err)
	}
}

// TestQueue_LocksOfOthersDoNotSeeIt also tests names that look like the keys of the queue.
func TestQueue_LocksOfOthersDoNotSeeIt(t *testing.T) {
	s := beside(t)
	for _, n := range []string{name, "a,queue", ",queue/a", ",queue", ",queue/" + name} {
		_, err := s.store.Enqueue(t.Context(), n, place("n", 1))
		must(t, err)
		m := concurrency.NewMutex(s.locker, s.store.LockName(n))
		must(t, m.TryLock(t.Context()))
		must(t, m.Unlock(t.Context()))
		rec, ver, err := s.store.Load(t.Context(), n)
		if rec.Nonce != "" || ver != "" || err != nil {
			t.Errorf("%q: %v %q %v", n, rec, ver, err)
		}
	}
}

// TestQueue_PlacesOfTheDeadGo: places of dead sessions disappear with an etcd lease that outlives
// their TTL.
func TestQueue_PlacesOfTheDeadGo(t *testing.T) {
	client, keys := connect(t, server(t)), prefix(t)
	s := open(t, client, keys)
	dead := leasestore.Waiter{Nonce: "dead", Beat: 1, TTL: 2 * time.Second}
	_, err := s.Enqueue(t.Context(), name, dead)
	must(t, err)
	r, err := client.Get(t.Context(), keys+",queue/", clientv3.WithPrefix())
	must(t, err)
	live, err := client.TimeToLive(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease))
	must(t, err)
	if live.GrantedTTL < 2 {
		t.Fatalf("on an etcd lease of %ds", live.GrantedTTL)
	}
	ahead := []leasestore.Waiter{dead}
	for beat := uint64(1); len(ahead) > 0; beat++ {
		ahead, err = s.Enqueue(t.Context(), name, place("next", beat))
		must(t, err)
		wait(t.Context(), 50*time.Millisecond)
	}
}

// TestQueue_OfManyNames: the places of one session share one etcd lease; after a revocation the
// session gets another one.
func TestQueue_OfManyNames(t *testing.T) {
	var requests, streams atomic.Int32
	client := intercepted(t, counted(&requests, &streams)...)
	keys := prefix(t)
	s := open(t, client, keys)
	for i := range 10 {
		_, err := s.Enqueue(t.Context(), shard(i), place("n", 1))
		must(t, err)
	}
	if got := requests.Load() + streams.Load(); got != 11 { // one for the etcd lease
		t.Errorf("%d requests for 10 places", got)
	}
	on := etcdLeases(t, client, keys)
	for id, n := range on {
		if n != 10 || id == 0 {
			t.Errorf("places on etcd leases: %v", on)
		}
		_, err := client.Revoke(t.Context(), clientv3.LeaseID(id))
		must(t, err)
	}
	_, err := s.Enqueue(t.Context(), shard(0), place("n", 2))
	must(t, err)
	ahead, err := s.Enqueue(t.Context(), shard(0), place("m", 1))
	if err != nil || !slices.Equal(ahead, []leasestore.Waiter{place("n", 2)}) {
		t.Errorf("behind %v, %v", ahead, err)
	}
}

// TestQueue_WhatOthersWriteIsPassedOver: keys of other programs in the queue are ignored.
func TestQueue_WhatOthersWriteIsPassedOver(t *testing.T) {
	client, keys := connect(t, server(t)), prefix(t)
	s := open(t, client, keys)
	for key, value := range map[string]string{"x": "", "y": "hello",
		"%zz": "00000000000000000001 5", "z": "1 b"} {
		_, err := client.Put(t.Context(), keys+",queue/"+"q/"+key, value)
		must(t, err)
	}
	if ahead, err := s.Enqueue(t.Context(), "q", place("n", 1)); err != nil || len(ahead) != 0 {
		t.Errorf("behind %v, %v", ahead, err)
	}
}
