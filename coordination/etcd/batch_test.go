//go:build stores

package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/leasestore"
)

// TestSwapAll_OneRefusedSwap: a swap that etcd refuses fails the transaction of its batch. The
// others are made all the same.
func TestSwapAll_OneRefusedSwap(t *testing.T) {
	client := connect(t, server(t))
	s := open(t, client, prefix(t))
	held := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute}
	large := held
	large.Owner = strings.Repeat("o", 2<<20)
	got := s.SwapAll(t.Context(), []leasestore.Swap{{Name: "a", Next: held},
		{Name: "large", Next: large}, {Name: "b", Next: held}})
	if got[1].Err == nil {
		t.Fatal("a record of 2 MiB was written")
	}
	for i, name := range map[int]string{0: "a", 2: "b"} {
		must(t, got[i].Err)
		_, ver, err := s.Load(t.Context(), name)
		must(t, err)
		if ver != got[i].Version {
			t.Errorf("%s has version %q, not %q", name, ver, got[i].Version)
		}
	}
}

// TestSwapAll_TheLeaseOfTheSessionIsGone: if the etcd lease of a session has ended, its claims are
// refused, as single ones are, and those of another session in the same batch are made.
func TestSwapAll_TheLeaseOfTheSessionIsGone(t *testing.T) {
	client := connect(t, server(t))
	s := open(t, client, prefix(t))
	held := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute, Session: 1}
	_, err := s.Swap(t.Context(), "first", "", held)
	must(t, err)
	holder, err := client.Get(t.Context(), s.LockName("first")+"/holder")
	must(t, err)
	_, err = client.Revoke(t.Context(), clientv3.LeaseID(holder.Kvs[0].Lease))
	must(t, err)
	other := held
	other.Nonce = "other"
	var swaps []leasestore.Swap
	for i := range leasestore.MaxBatch {
		swaps = append(swaps, leasestore.Swap{Name: fmt.Sprint("s", i), Next: held})
	}
	swaps[5].Next = other
	for i, got := range s.SwapAll(t.Context(), swaps) {
		rec, ver, err := s.Load(t.Context(), swaps[i].Name)
		must(t, err)
		switch {
		case i != 5 && (!errors.Is(got.Err, leasestore.ErrRefused) || ver != ""):
			t.Errorf("swap %d: %v, found version %q", i, got.Err, ver)
		case i == 5 && (got.Err != nil || ver != got.Version || rec.Nonce != "other"):
			t.Errorf("the other session: %v, found %v, version %q", got.Err, rec, ver)
		}
	}
}
