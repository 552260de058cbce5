// Package remembertest checks that a store of remembered entities obeys the contract of
// sharding.RememberStore. Every implementation runs it:
//
//	func TestRemember(t *testing.T) {
//		remembertest.Run(t, func(t *testing.T) (a, b sharding.RememberStore) { return open(t), open(t) })
//	}
//
// Memory is an implementation for tests.
//
// docs/sharding.md describes remembered entities.
package remembertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/sharding"
)

// Run checks the stores returned by open: two stores on the same initially empty location, as used
// by two members. They may be the same value. Each error names the broken rule.
func Run(t *testing.T, open func(t *testing.T) (a, b sharding.RememberStore)) {
	for _, c := range []struct {
		rule string
		test func(s *suite)
	}{
		{"a shard without changes has no entities", (*suite).empty},
		{"Load returns what was added and not removed", (*suite).changes},
		{"a repeated call is no error", (*suite).again},
		{"types and shards are apart", (*suite).apart},
		{"ids are kept byte by byte", (*suite).texts},
		{"a change of many ids is kept", (*suite).many},
		{"a call of an earlier tenure fails, without effect", (*suite).stale},
		{"an older call of the same tenure fails, without effect", (*suite).older},
		{"a call whose context has ended harms no later one", (*suite).ended},
		{"no change of an earlier tenure follows a Load", (*suite).race},
		{"no older change follows a younger one", (*suite).overtaken},
	} {
		t.Run(strings.ReplaceAll(c.rule, ",", ""), func(t *testing.T) {
			a, b := open(t)
			c.test(&suite{t: t, a: a, b: b})
		})
	}
}

type suite struct {
	t    *testing.T
	a, b sharding.RememberStore
	seq  uint64 // of the last call
}

// tenure returns a tenure of a shard, with the number of its next call.
func (s *suite) tenure(shard int, token coordination.Token) sharding.ShardTenure {
	return s.next(sharding.ShardTenure{Type: "cart", Shard: shard, Token: token})
}

func (s *suite) next(of sharding.ShardTenure) sharding.ShardTenure {
	s.seq++
	of.Seq = s.seq
	return of
}

func (s *suite) change(in sharding.RememberStore, of sharding.ShardTenure, add, remove []string) {
	s.t.Helper()
	if err := in.Change(s.t.Context(), of, add, remove); err != nil {
		s.t.Fatalf("change in %+v: %v", of, err)
	}
}

// has checks what Load returns.
func (s *suite) has(in sharding.RememberStore, of sharding.ShardTenure, want ...string) {
	s.t.Helper()
	got, err := in.Load(s.t.Context(), of)
	if err != nil {
		s.t.Fatalf("load of %+v: %v", of, err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Fatalf("%+v has %d entities %.200q, want %d %.200q", of, len(got), got, len(want),
			want)
	}
}

func (s *suite) empty() { s.has(s.a, s.tenure(0, 1)) }

func (s *suite) changes() {
	s.change(s.a, s.tenure(3, 5), []string{"ann", "bob", "cid"}, nil)
	s.has(s.b, s.tenure(3, 5), "ann", "bob", "cid")
	s.change(s.b, s.tenure(3, 6), []string{"dan"}, []string{"ann", "cid"})
	s.has(s.a, s.tenure(3, 7), "bob", "dan")
	s.change(s.a, s.tenure(3, 7), nil, []string{"bob", "dan"})
	s.has(s.b, s.tenure(3, 7))
	s.change(s.b, s.tenure(3, 7), []string{"ann"}, nil)
	s.has(s.a, s.tenure(3, 8), "ann")
}

func (s *suite) again() {
	for range 2 {
		s.has(s.a, s.tenure(0, 1))
	}
	for range 2 {
		s.change(s.a, s.tenure(0, 1), []string{"ann"}, []string{"nobody"})
	}
	for range 2 {
		s.has(s.b, s.tenure(0, 1), "ann")
	}
	for range 2 {
		s.change(s.a, s.tenure(0, 1), nil, []string{"ann"})
	}
	s.change(s.a, s.tenure(0, 1), nil, nil)
	s.has(s.b, s.tenure(0, 1))
}

func (s *suite) apart() {
	wish := sharding.ShardTenure{Type: "wish", Shard: 1, Token: 1}
	long := sharding.ShardTenure{Type: strings.Repeat("x", 40), Shard: 4095, Token: 1 << 62}
	s.change(s.a, s.tenure(1, 7), []string{"ann"}, nil)
	s.change(s.a, s.tenure(11, 2), []string{"bob"}, nil)
	s.change(s.a, s.next(wish), []string{"cid"}, nil)
	s.change(s.a, s.next(long), []string{"dan"}, nil)
	s.change(s.a, s.tenure(1, 7), nil, []string{"bob", "cid", "dan"})
	s.has(s.b, s.tenure(1, 7), "ann")
	s.has(s.b, s.tenure(11, 2), "bob")
	s.has(s.b, s.next(wish), "cid")
	s.has(s.b, s.next(long), "dan")
}

func (s *suite) texts() {
	ids := []string{"a", "A", " a", "a ", "ä", "a\u0308", "'; --", `"\`, "%_", "a/b", "日本", "\u00a0",
		strings.Repeat("x", 512), strings.Repeat("x", 511), "0", "00"}
	s.change(s.a, s.tenure(0, 1), ids, nil)
	s.has(s.b, s.tenure(0, 1), slices.Clone(ids)...)
	s.change(s.b, s.tenure(0, 1), nil, []string{"A", "a ", "%_", "0"})
	s.has(s.a, s.tenure(0, 1), slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.Contains([]string{"A", "a ", "%_", "0"}, id)
	})...)
}

func (s *suite) many() {
	var ids []string
	for k := range 5000 {
		ids = append(ids, fmt.Sprint("entity-", k))
	}
	given := slices.Clone(ids)
	s.change(s.a, s.tenure(0, 1), given, nil)
	if !slices.Equal(given, ids) {
		s.t.Error("Change has changed its argument")
	}
	s.has(s.b, s.tenure(0, 1), slices.Clone(ids)...)
	s.change(s.b, s.tenure(0, 2), nil, ids[1:])
	s.has(s.a, s.tenure(0, 2), ids[0])
}

func (s *suite) stale() {
	s.change(s.a, s.tenure(0, 5), []string{"ann"}, nil)
	s.has(s.b, s.tenure(0, 9), "ann") // a Load begins a tenure
	err := s.a.Change(s.t.Context(), s.tenure(0, 5), []string{"bob"}, []string{"ann"})
	if err == nil {
		s.t.Error("a change of an earlier tenure is accepted")
	}
	if _, err := s.a.Load(s.t.Context(), s.tenure(0, 8)); err == nil {
		s.t.Error("a load of an earlier tenure is accepted")
	}
	s.has(s.a, s.tenure(0, 9), "ann")
	s.change(s.a, s.tenure(0, 12), []string{"cid"}, nil) // and so does a Change
	if err := s.b.Change(s.t.Context(), s.tenure(0, 9), nil, []string{"cid"}); err == nil {
		s.t.Error("a change of an earlier tenure is accepted after a change")
	}
	s.has(s.b, s.tenure(0, 12), "ann", "cid")
	s.has(s.b, s.tenure(1, 1))
}

func (s *suite) ended() {
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	if err := s.a.Change(ctx, s.tenure(0, 1), []string{"ann"}, nil); err == nil {
		s.has(s.b, s.tenure(0, 1), "ann") // it may have succeeded, then it counts
	}
	if ids, err := s.a.Load(ctx, s.tenure(0, 1)); err == nil {
		s.has(s.b, s.tenure(0, 1), ids...)
	}
	s.change(s.b, s.tenure(0, 2), nil, []string{"ann"})
	s.has(s.a, s.tenure(0, 2))
}

// race changes a shard in one tenure while the next ones begin.
func (s *suite) race() {
	const tenures = 20
	for token := coordination.Token(1); token <= tenures; token++ {
		var wg sync.WaitGroup
		for k := range 4 {
			of := s.tenure(0, token)
			wg.Go(func() {
				id := []string{fmt.Sprintf("%d-%d", token, k)}
				if k%2 == 0 { // an error is allowed: a younger call may have been made
					_ = s.a.Change(s.t.Context(), of, id, nil)
				} else {
					_ = s.b.Change(s.t.Context(), of, id, nil)
				}
			})
		}
		first := s.load(token + 1)
		wg.Wait()
		second := s.load(token + 1)
		if !slices.Equal(first, second) {
			s.t.Fatalf("tenure %d loaded %.200q, and then %.200q", token+1, first, second)
		}
	}
}

// older makes a call of a tenure after a younger one. The store has not had the older call, as if
// it came late, or has had it already.
func (s *suite) older() {
	first := s.tenure(0, 3)
	s.change(s.a, first, []string{"ann"}, nil)
	late := s.tenure(0, 3)
	s.change(s.a, s.tenure(0, 3), []string{"bob"}, nil)
	for name, of := range map[string]sharding.ShardTenure{"late": late, "repeated": first} {
		err := s.a.Change(s.t.Context(), of, []string{"cid"}, []string{"ann", "bob"})
		if err == nil {
			s.t.Errorf("a %s change is accepted after a younger one of its tenure", name)
		}
	}
	late = s.tenure(0, 3)
	s.has(s.b, s.tenure(0, 3), "ann", "bob")
	if err := s.a.Change(s.t.Context(), late, []string{"cid"}, []string{"ann"}); err == nil {
		s.t.Error("a change is accepted after a younger Load of its tenure")
	}
	s.has(s.b, s.tenure(0, 3), "ann", "bob")
	first.Token, first.Seq = 4, 1 // the numbers of another tenure begin anew
	s.change(s.b, first, nil, []string{"bob"})
	first.Seq = 2
	s.has(s.a, first, "ann")
}

// overtaken removes an id while a younger call of the same tenure adds it.
func (s *suite) overtaken() {
	const rounds = 50
	id := []string{"ann"}
	for range rounds {
		var wg sync.WaitGroup
		older := s.tenure(0, 1)
		wg.Go(func() { _ = s.a.Change(s.t.Context(), older, nil, id) }) // an error is allowed
		err := s.b.Change(s.t.Context(), s.tenure(0, 1), id, nil)
		for range 100 {
			if err == nil {
				break
			}
			err = s.b.Change(s.t.Context(), s.tenure(0, 1), id, nil) // as after an error
		}
		wg.Wait()
		if err != nil {
			s.t.Fatalf("change: %v", err)
		}
		s.has(s.b, s.tenure(0, 1), id...)
	}
}

// load returns what a tenure loads. A store may fail while others use the shard.
func (s *suite) load(token coordination.Token) []string {
	s.t.Helper()
	var err error
	for range 100 {
		var ids []string
		if ids, err = s.b.Load(s.t.Context(), s.tenure(0, token)); err == nil {
			slices.Sort(ids)
			return ids
		}
	}
	s.t.Fatalf("load under %d: %v", token, err)
	return nil
}
