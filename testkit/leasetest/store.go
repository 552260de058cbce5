package leasetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

var storeChecks = []check{
	{"S1_EmptyStoreHasNoRecord", func(e *env) {
		rec, ver, err := e.store.Load(e.Context(), name)
		e.that(e.kept(rec, leasestore.Record{}) && ver == "" && err == nil, "got %v %q %v",
			rec, ver, err)
	}},
	{"S2_SwapComparesVersions", func(e *env) {
		v1 := e.write("", sample(1))
		v2 := e.write(v1, sample(2))
		for _, old := range []leasestore.Version{"", v1, "nonsense"} {
			_, err := e.store.Swap(e.Context(), name, old, sample(9))
			e.that(errors.Is(err, leasestore.ErrConflict), "version %q: %v", old, err)
		}
		rec, ver, err := e.store.Load(e.Context(), name)
		e.that(e.kept(rec, sample(2)) && ver == v2 && err == nil, "got %v %q %v", rec, ver, err)
	}},
	{"S3_VersionsAreNeverReused", func(e *env) {
		seen := map[leasestore.Version]bool{"": true}
		ver := leasestore.Version("")
		for i := range 50 {
			ver = e.write(ver, sample(i%2))
			e.that(!seen[ver], "version %q twice", ver)
			seen[ver] = true
		}
	}},
	{"S4_ConcurrentSwapsHaveOneWinner", func(e *env) {
		for round := range 20 {
			_, old, err := e.store.Load(e.Context(), name)
			e.must(err)
			e.that(e.race(old, 10) == 1, "round %d", round)
		}
	}},
	{"S5_EndedContextIsRefused", func(e *env) {
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		_, err := e.store.Swap(ctx, name, "", sample(1))
		e.that(err != nil && !errors.Is(err, leasestore.ErrConflict), "swap: %v", err)
		_, ver, err := e.store.Load(e.Context(), name)
		e.that(ver == "" && err == nil, "got %q %v", ver, err)
	}},
	{"S6_RecordsKeepEveryValue", func(e *env) {
		ver := leasestore.Version("")
		for _, rec := range []leasestore.Record{
			{Owner: "ü/\n\x00\"", Nonce: strings.Repeat("n", 100), Token: 1<<63 - 1,
				Attempt: 1<<64 - 1,
				TTL:     24 * time.Hour},
			{Token: 7},
		} {
			ver = e.write(ver, rec)
			got, _, err := e.store.Load(e.Context(), name)
			e.that(e.kept(got, rec) && err == nil, "got %#v, want %#v, %v", got, rec, err)
		}
	}},
	{"S7_WatchYieldsPresentAndNewest", checkWatch},
	{"S8_BlankedIsNotDeleted", func(e *env) {
		ver := e.write(e.write("", sample(6)), leasestore.Record{Token: 6})
		rec, got, err := e.store.Load(e.Context(), name)
		e.that(e.kept(rec, leasestore.Record{Token: 6}) && got == ver && err == nil, "got %v %q %v",
			rec, got, err)
		_, err = e.store.Swap(e.Context(), name, "", sample(7))
		e.that(errors.Is(err, leasestore.ErrConflict), "the name was free: %v", err)
	}},
	{"S9_LoadIsAsNewAsTheCall", checkFresh},
	{"S10_H1_LoadAndSwapAreLinearizable", checkStoreHistory},
	{"S11_OutcomesAreNotMixedUp", func(e *env) {
		ver := e.write("", sample(1))
		_, err := e.store.Swap(e.Context(), name, "", sample(2))
		e.that(errors.Is(err, leasestore.ErrConflict) && !errors.Is(err, leasestore.ErrRefused),
			"conflict: %v", err)
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		_, _, err = e.store.Load(ctx, name)
		e.that(err != nil && !errors.Is(err, leasestore.ErrConflict),
			"load with an ended context: %v", err)
		_, err = e.store.Swap(ctx, name, ver, sample(3))
		e.that(err != nil && !errors.Is(err, leasestore.ErrConflict),
			"swap with an ended context: %v", err)
	}},
	{"S12_AnotherHandleSeesTheSame", func(e *env) {
		e.needs(e.options.Reopen != nil, "Reopen")
		ver := e.write("", sample(1))
		other, err := e.options.Reopen(e.T, e.store)
		e.must(err)
		rec, got, err := other.Load(e.Context(), name)
		e.that(e.kept(rec, sample(1)) && got == ver && err == nil, "got %v %q %v", rec, got, err)
		next, err := other.Swap(e.Context(), name, ver, sample(2))
		e.must(err)
		_, err = e.store.Swap(e.Context(), name, ver, sample(3))
		e.that(errors.Is(err, leasestore.ErrConflict), "got %v", err)
		rec, got, err = e.store.Load(e.Context(), name)
		e.that(e.kept(rec, sample(2)) && got == next && err == nil, "got %v %q %v", rec, got, err)
	}},
	{"S3_F1_DeletedRecordComesBackUnderANewVersion", func(e *env) {
		e.needs(e.options.Delete != nil, "Delete")
		seen := map[leasestore.Version]bool{}
		for range 3 {
			v1 := e.write("", sample(1))
			v2 := e.write(v1, sample(2))
			e.that(!seen[v1] && !seen[v2], "version %q or %q twice", v1, v2)
			seen[v1], seen[v2] = true, true
			e.must(e.options.Delete(e.store, name))
			_, ver, err := e.store.Load(e.Context(), name)
			e.that(ver == "" && err == nil, "after deletion: %q %v", ver, err)
		}
	}},
	{"S13_SessionsAndForeverAreKept", func(e *env) {
		e.needsAbility(keepsSessions(e.store), "SessionKeeper")
		ver := leasestore.Version("")
		through, for1 := sample(1), sample(2)
		through.Session, for1.Forever = 1<<63-1, true
		for _, rec := range []leasestore.Record{through, for1, sample(3)} {
			ver = e.write(ver, rec)
			got, _, err := e.store.Load(e.Context(), name)
			e.that(e.kept(got, rec) && err == nil, "got %#v, want %#v, %v", got, rec, err)
		}
	}},
	{"S14_RemoveIsConditional", func(e *env) {
		e.needsAbility(e.removes(), "Remover")
		r := e.store.(leasestore.Remover)
		first := e.write("", sample(1))
		second := e.write(first, sample(2))
		e.that(errors.Is(r.Remove(e.Context(), name, first), leasestore.ErrConflict),
			"removed another version")
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		e.that(r.Remove(ctx, name, second) != nil, "removed after the context ended")
		rec, ver, err := e.store.Load(e.Context(), name)
		e.that(e.kept(rec, sample(2)) && ver == second && err == nil, "got %v %q %v", rec, ver, err)
		e.must(r.Remove(e.Context(), name, second))
		_, ver, err = e.store.Load(e.Context(), name)
		e.that(ver == "" && err == nil, "still there: %q %v", ver, err)
		e.that(errors.Is(r.Remove(e.Context(), name, second), leasestore.ErrConflict),
			"removed twice")
		again := e.write("", sample(1))
		e.that(again != first && again != second, "version %q twice", again)
	}},
	{"S16_F1_GivenTokensAreShown", func(e *env) {
		giver, ok := e.store.(leasestore.TokenGiver)
		e.needsAbility(ok, "TokenGiver")
		least, ver := coordination.Token(0), leasestore.Version("")
		for range 3 {
			rec := sample(int(least) + 1)
			ver = e.write(ver, rec)
			given := giver.TokenOf(ver)
			e.that(given > least, "given %v after %v", given, least)
			rec.Token, rec.Attempt = given, 1<<40
			ver = e.write(ver, rec)
			shown, _, err := e.store.Load(e.Context(), name)
			e.that(shown == rec && giver.TokenOf(ver) == given && err == nil,
				"renewed as %v, shown as %v, %v", giver.TokenOf(ver), shown, err)
			ver = e.write(ver, leasestore.Record{Token: given})
			least = given
		}
		of := leasestore.SessionRecords + "asked"
		ver, err := e.store.Swap(e.Context(), of, "", sample(1))
		e.must(err)
		e.that(giver.TokenOf(ver) == 1, "the record of a session, which asked for token 1, got %v",
			giver.TokenOf(ver))
	}},
	{"A2_A10_A11_NamesNeverShareARecord", checkNames},
	{"A2_WhatIsNoNameIsRefused", checkBadNames},
}

// sample returns a record identified by its attempt, whatever token the store assigns.
func sample(i int) leasestore.Record {
	return leasestore.Record{Owner: "somebody", Nonce: "nonce", Token: coordination.Token(i),
		Attempt: uint64(i), TTL: ttl}
}

func (e *env) write(old leasestore.Version, rec leasestore.Record) leasestore.Version {
	e.Helper()
	ver, err := e.store.Swap(e.Context(), name, old, rec)
	e.must(err)
	return ver
}

// race returns the number of successful swaps among n on one version.
func (e *env) race(old leasestore.Version, n int) (won int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		wg.Go(func() {
			_, err := e.store.Swap(e.Context(), name, old, sample(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case !errors.Is(err, leasestore.ErrConflict):
				e.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	return won
}
