package distributeddata_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

type register = crdt.LWWRegister[string]

var (
	users = distributeddata.NewShardedMap("users", 16, crdt.ORMap[string, register]{})
	seen  = distributeddata.NewShardedSet("seen", 16, crdt.ORSet[int]{})
)

func setTo(e string) func(w *crdt.Writer, v *register) error {
	return func(w *crdt.Writer, v *register) error { v.Set(w, e); return nil }
}

func textOf(v register) string { text, _ := v.Value(); return text }

// plus returns a function that adds n to a counter.
func plus(n int64) func(w *crdt.Writer, v *crdt.PNCounter) error {
	return func(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, n); return nil }
}

// held returns the content of a map at a member.
func held(t *testing.T, dd *distributeddata.Replicator) map[string]string {
	t.Helper()
	now, err := users.Of(dd.Snapshot())
	require.NoError(t, err)
	got := map[string]string{}
	for k, v := range now.All() {
		got[k] = textOf(v)
		one, err := users.Get(context.Background(), dd, k)
		require.NoError(t, err)
		require.Equal(t, got[k], textOf(one))
		at, ok := now.Get(k)
		require.True(t, ok)
		require.Equal(t, got[k], textOf(at))
	}
	require.Equal(t, len(got), now.Len())
	return got
}

// Three members write concurrently, also while one of them is cut off: each its own keys, so a
// plain map predicts the result. In the end all hold that result, and a loop over the changes and
// an actor have been notified of it.
func TestShardedMap_IsAPlainMap(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		ctx, end := context.WithCancel(context.Background())
		defer end()
		told, toldSet := map[string]string{}, map[int]bool{}
		go func() {
			for ch := range users.Changes(ctx, c.at(2)) {
				if old := textOf(ch.Old); ch.Err != nil || old != told[ch.Key] {
					t.Errorf("%v: told of %q before: %q", ch.Err, ch.Key, old)
				}
				if told[ch.Key] = textOf(ch.Value); ch.Removed {
					delete(told, ch.Key)
				}
			}
		}()
		go func() {
			for ch := range seen.Changes(ctx, c.at(1)) {
				if toldSet[ch.Element] = true; ch.Removed {
					delete(toldSet, ch.Element)
				}
			}
		}()
		models := [3]map[string]string{{}, {}, {}}
		elems := [3]map[int]bool{{}, {}, {}}
		write := func(i, rounds int, seed uint64) {
			rng, dd := rand.New(rand.NewPCG(seed, uint64(i))), c.at(i)
			for n := range rounds {
				key, e := fmt.Sprintf("%d-%d", i, rng.IntN(60)), i*1000+rng.IntN(60)
				switch rng.IntN(5) {
				case 0:
					require.NoError(t, users.Remove(ctx, dd, key, local))
					delete(models[i], key)
					require.NoError(t, seen.Remove(ctx, dd, e, local))
					delete(elems[i], e)
				case 1: // several, possibly in different shards
					other := fmt.Sprintf("%d-%d", i, rng.IntN(60))
					require.NoError(t, distributeddata.Atomically(ctx, dd,
						func(tx *distributeddata.Tx) error {
							users.UpdateIn(tx, key, func(v *register) {
								v.Set(tx.Writer, fmt.Sprint(n))
							})
							users.RemoveIn(tx, other)
							seen.AddIn(tx, e)
							_, ok := users.GetIn(tx, key)
							if ok != (key != other) || !seen.ContainsIn(tx, e) {
								return errors.New("a transaction does not see what it has done")
							}
							return nil
						}, local))
					models[i][key], elems[i][e] = fmt.Sprint(n), true
					delete(models[i], other)
				default:
					v, err := users.Update(ctx, dd, key, setTo(fmt.Sprint(n)), local)
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(n), textOf(v))
					models[i][key], elems[i][e] = textOf(v), true
					require.NoError(t, seen.Add(ctx, dd, e, local))
				}
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			}
		}
		for round := range 4 {
			if round == 2 {
				c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
			}
			var writers sync.WaitGroup
			for i := range 3 {
				writers.Go(func() { write(i, 60, uint64(round)) })
			}
			writers.Wait()
			c.Net.Heal()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want, wantElems := map[string]string{}, map[int]bool{}
		for i := range 3 {
			maps.Copy(want, models[i])
			maps.Copy(wantElems, elems[i])
		}
		for i := range 3 {
			require.Equal(t, want, held(t, c.at(i)), i)
			now, err := seen.Of(c.at(i).Snapshot())
			require.NoError(t, err)
			require.ElementsMatch(t, slices.Collect(maps.Keys(wantElems)),
				slices.Collect(now.All()))
			require.Equal(t, len(wantElems), now.Len())
			for e := range wantElems {
				ok, err := seen.Contains(context.Background(), c.at(i), e)
				require.True(t, ok && err == nil && now.Contains(e))
			}
		}
		require.Equal(t, want, told)
		require.Equal(t, wantElems, toldSet)
	})
}

// Changes of several members to one key merge as the type of the value defines.
func TestShardedMap_ValuesMerge(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		hits := distributeddata.NewShardedMap("hits", 4, crdt.ORMap[int, crdt.PNCounter]{})
		c.Net.Partition(addresses(c, 0), addresses(c, 1), addresses(c, 2))
		for i := range 3 {
			for page := range 50 {
				_, err := hits.Update(context.Background(), c.at(i), page, plus(int64(i+1)), local)
				require.NoError(t, err)
			}
		}
		c.Net.Heal()
		for i := range 3 {
			v, err := hits.Get(context.Background(), c.at(i), 17, distributeddata.All)
			require.NoError(t, err)
			require.EqualValues(t, 6, v.Value())
			now, err := hits.Of(c.at(i).Snapshot())
			require.NoError(t, err)
			require.Equal(t, 50, now.Len())
			v, ok := now.Get(17)
			require.True(t, ok)
			require.EqualValues(t, 6, v.Value())
		}
	})
}

func TestSharded_Levels(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		_, err := users.Update(context.Background(), c.at(0), "ada", setTo("Ada"),
			distributeddata.Majority)
		require.NoError(t, err)
		v, err := users.Get(context.Background(), c.at(1), "ada", distributeddata.Linearizable)
		require.NoError(t, err)
		require.Equal(t, "Ada", textOf(v))
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		v, err = users.Update(ctx, c.at(0), "ada", setTo("Lovelace"), distributeddata.Majority)
		q, ok := errors.AsType[*distributeddata.QuorumError](err)
		require.True(t, ok, err)
		require.Contains(t, q.Key, "users#")
		require.Equal(t, "Lovelace", textOf(v), "it is kept, and shown")
		require.ErrorIs(t, users.Remove(ctx, c.at(0), "ada", distributeddata.All),
			distributeddata.ErrQuorum)
		_, err = seen.Contains(ctx, c.at(0), 1, distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		require.ErrorIs(t, users.Clear(ctx, c.at(0), distributeddata.Majority),
			distributeddata.ErrQuorum)
		_, err = users.Get(context.Background(), c.at(0), "ada", distributeddata.Nodes(1))
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
	})
}

// uses calls every entry point of a map and a set, and returns the errors.
func uses(ctx context.Context, dd *distributeddata.Replicator, m distributeddata.ShardedMap[string,
	register], s distributeddata.ShardedSet[int]) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = m.Get(ctx, dd, "a")
	_, errs["Get at Majority"] = m.Get(ctx, dd, "a", distributeddata.Majority)
	_, errs["Update"] = m.Update(ctx, dd, "a", setTo("b"), local)
	errs["Remove"] = m.Remove(ctx, dd, "a", local)
	_, errs["Of"] = m.Of(dd.Snapshot())
	tx := func(f func(tx *distributeddata.Tx)) error {
		return distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			f(tx)
			return nil
		}, local)
	}
	errs["UpdateIn"] = tx(func(tx *distributeddata.Tx) {
		m.UpdateIn(tx, "a", func(v *register) { v.Set(tx.Writer, "b") })
	})
	errs["RemoveIn"] = tx(func(tx *distributeddata.Tx) { m.RemoveIn(tx, "a") })
	errs["GetIn"] = tx(func(tx *distributeddata.Tx) { m.GetIn(tx, "a") })
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for ch := range m.Changes(within, dd) {
		errs["Changes"] = cmp.Or(errs["Changes"], ch.Err)
	}
	errs["set Add"] = s.Add(ctx, dd, 1, local)
	errs["set Remove"] = s.Remove(ctx, dd, 1, local)
	_, errs["set Contains"] = s.Contains(ctx, dd, 1)
	_, errs["set Contains at Majority"] = s.Contains(ctx, dd, 1, distributeddata.Majority)
	_, errs["set Of"] = s.Of(dd.Snapshot())
	errs["set AddIn"] = tx(func(tx *distributeddata.Tx) { s.AddIn(tx, 1) })
	errs["set RemoveIn"] = tx(func(tx *distributeddata.Tx) { s.RemoveIn(tx, 1) })
	errs["set ContainsIn"] = tx(func(tx *distributeddata.Tx) { s.ContainsIn(tx, 1) })
	within, cancel = context.WithTimeout(ctx, time.Second)
	defer cancel()
	for ch := range s.Changes(within, dd) {
		errs["set Changes"] = cmp.Or(errs["set Changes"], ch.Err)
	}
	return errs
}

func TestSharded_BadNamesAndNumbersAreRefusedEverywhere(t *testing.T) {
	_, dd, stop := startMember()
	defer stop()
	for _, c := range []struct {
		name   string
		shards int
		why    string
	}{
		{"", 1, "name of a sharded collection is empty"},
		{strings.Repeat("n", 257), 1, "has 257 bytes, over the limit of 256"},
		{"\xff", 1, "is not UTF-8"},
		{"a#b", 1, `has a '#' in it`},
		{"a*", 1, `has a '*' in it`},
		{"a", 0, `collection "a" has 0 shards, must be from 1 to 65536`},
		{"a", -1, "has -1 shards"},
		{"a", 1<<16 + 1, "has 65537 shards"},
	} {
		m := distributeddata.NewShardedMap(c.name, c.shards, crdt.ORMap[string, register]{})
		s := distributeddata.NewShardedSet(c.name, c.shards, crdt.ORSet[int]{})
		errs := uses(t.Context(), dd, m, s)
		errs["Clear"], errs["set Clear"] = m.Clear(t.Context(), dd, local), s.Clear(t.Context(), dd,
			local)
		for call, err := range errs {
			require.ErrorIs(t, err, distributeddata.ErrInvalid, "%s of %q", call, c.name)
			require.ErrorContains(t, err, c.why, "%s of %q", call, c.name)
		}
	}
	require.Empty(t, slices.Collect(dd.Keys()))
}

// largest is a user-defined type that panics at a certain number.
type largest uint8

func (n largest) Merge(o largest) largest                 { return max(n, o) }
func (n largest) AppendBinary(dst []byte) ([]byte, error) { return append(dst, byte(n)), nil }
func (n largest) Decode(src []byte) (largest, error) {
	if src[0] == 13 {
		panic("unlucky")
	}
	return largest(src[0]), nil
}

// The names, and the placement of elements, never change: members of later versions must find what
// those of this one wrote.
func TestSharded_LayoutNeverChanges(t *testing.T) {
	_, dd, stop := startMember()
	defer stop()
	ctx := t.Context()
	for _, key := range []string{"", "a", "ada", strings.Repeat("x", 1000)} {
		_, err := distributeddata.NewShardedMap("users", 1<<16,
			crdt.ORMap[string, register]{}).Update(ctx, dd, key, setTo("x"), local)
		require.NoError(t, err)
	}
	long := strings.Repeat("n", 256)
	require.NoError(t, distributeddata.NewShardedSet(long, 1, crdt.ORSet[int]{}).Add(ctx, dd, -7,
		local))
	require.NoError(t, distributeddata.NewShardedSet("seen", 1024,
		crdt.NewORSet(crdt.JSON[[]int]())).Add(ctx, dd, []int{1, 2}, local))
	own := distributeddata.NewShardedMap("own", 3, crdt.ORMap[uint8, largest]{})
	to := func(n largest) func(*crdt.Writer, *largest) error {
		return func(_ *crdt.Writer, v *largest) error { *v = n; return nil }
	}
	v, err := own.Update(ctx, dd, 200, to(7), local)
	require.NoError(t, err)
	require.EqualValues(t, 7, v)
	v, err = own.Update(ctx, dd, 200, to(13), local)
	require.ErrorContains(t, err, "panic: unlucky")
	require.Zero(t, v)
	_, err = own.Get(ctx, dd, 200)
	require.ErrorContains(t, err, "panic: unlucky")
	require.Equal(t, []string{
		long + "#ORSet[int]#1#0000",
		"own#ORMap[uint]own[custom]#3#0000",
		"seen#ORSet[custom]#1024#03ef",
		"users#ORMap[string]LWWRegister[string]#65536#00e1",
		"users#ORMap[string]LWWRegister[string]#65536#06d0",
		"users#ORMap[string]LWWRegister[string]#65536#6e5b",
		"users#ORMap[string]LWWRegister[string]#65536#e999",
	}, slices.Collect(dd.Keys()))
}

// Two programs that give different numbers of shards write at the same time, separately. Their
// contents do not mix, each operation names both numbers as soon as they have heard of each other,
// and Clear of the wrong one resolves it.
func TestSharded_OtherNumberOfShardsIsNamed(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		ctx := context.Background()
		numbers := distributeddata.NewShardedSet("numbers", 8, crdt.ORSet[int]{})
		wrongUsers := distributeddata.NewShardedMap("users", 100, crdt.ORMap[string, register]{})
		wrongNumbers := distributeddata.NewShardedSet("numbers", 100, crdt.ORSet[int]{})
		var told []string
		looping, end := context.WithCancel(ctx)
		defer end()
		go func() {
			for ch := range numbers.Changes(looping, c.at(1)) {
				if told = append(told, fmt.Sprint(ch.Element, !ch.Removed)); ch.Err != nil {
					told[len(told)-1] = "error"
					require.ErrorIs(t, ch.Err, distributeddata.ErrInvalid)
				}
			}
		}()
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
		_, err := users.Update(ctx, c.at(0), "ada", setTo("Ada"), local)
		require.NoError(t, err)
		require.NoError(t, numbers.Add(ctx, c.at(0), 1, local))
		_, err = wrongUsers.Update(ctx, c.at(1), "ada", setTo("Bob"), local)
		require.NoError(t, err)
		require.NoError(t, wrongNumbers.Add(ctx, c.at(1), 2, local))
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		for i := range 3 {
			for call, err := range uses(ctx, c.at(i), users, numbers) {
				require.ErrorIs(t, err, distributeddata.ErrInvalid, call)
				require.ErrorContains(t, err, "#100#", call)
				require.Regexp(t, `has (16|8) shards here`, err.Error(), call)
			}
			for call, err := range uses(ctx, c.at(i), wrongUsers, wrongNumbers) {
				require.ErrorIs(t, err, distributeddata.ErrInvalid, call)
				require.ErrorContains(t, err, "has 100 shards here", call)
			}
		}
		require.NoError(t, wrongUsers.Clear(ctx, c.at(2), distributeddata.All))
		require.NoError(t, wrongNumbers.Clear(ctx, c.at(2), distributeddata.All))
		for i := range 3 {
			require.Equal(t, map[string]string{"ada": "Ada"}, held(t, c.at(i)))
			require.NoError(t, numbers.Add(ctx, c.at(i), 3, local))
			now, err := numbers.Of(c.at(i).Snapshot())
			require.NoError(t, err)
			require.ElementsMatch(t, []int{1, 3}, slices.Collect(now.All()))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"error", "1 true", "3 true"}, told)
	})
}

func TestSharded_OtherTypesAreNamed(t *testing.T) {
	_, dd, stop := startMember()
	defer stop()
	_, err := users.Update(t.Context(), dd, "ada", setTo("Ada"), local)
	require.NoError(t, err)
	counts := distributeddata.NewShardedMap("users", 16, crdt.ORMap[string, crdt.PNCounter]{})
	_, err = counts.Update(t.Context(), dd, "bob", plus(1), local)
	require.ErrorIs(t, err, distributeddata.ErrType)
	require.ErrorContains(t, err,
		`collection "users" is of ORMap[string]PNCounter here, but entry "users#ORMap[string]LWWRegister[string]#16#`)
	require.ErrorIs(t, distributeddata.NewShardedSet("users", 16, crdt.ORSet[string]{}).Add(
		t.Context(), dd, "bob", local), distributeddata.ErrType)
	_, err = distributeddata.NewKey("users#x", items{}).Update(t.Context(), dd, addTo("x"), local)
	require.NoError(t, err)
	_, err = users.Get(t.Context(), dd, "ada")
	require.ErrorIs(t, err, distributeddata.ErrInvalid)
	require.ErrorContains(t, err, `entry "users#x" lies among the shards of collection "users"`)
	require.NoError(t, distributeddata.NewKey("users#x", items{}).Delete(t.Context(), dd, local))
	_, err = users.Get(t.Context(), dd, "ada")
	require.NoError(t, err)
	_, err = users.Get(t.Context(), dd, "eve")
	require.ErrorIs(t, err, distributeddata.ErrNotFound)
	require.ErrorContains(t, err, `collection "users"`)
}

// badCodec is a codec of keys that fails on command.
type badCodec struct{ encode func() error }

func (c badCodec) Append(dst []byte, e int) ([]byte, error) {
	return append(dst, byte(e)), c.encode()
}
func (c badCodec) Decode(src []byte) (int, error) { return int(src[0]), nil }

// Application functions affect only their caller, and change nothing.
func TestSharded_FunctionsMayDoWhatTheyMustNot(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		_, err := users.Update(ctx, dd, "ada", setTo("Ada"), local)
		require.NoError(t, err)
		for name, f := range map[string]func() error{
			"error": func() error { return errors.New("no") },
			"panic": func() error { panic("boom") },
			"exit":  func() error { runtime.Goexit(); return nil },
			"re-entry": func() error {
				_, err := users.Update(ctx, dd, "bob", setTo("Bob"), local)
				require.ErrorIs(t, err, distributeddata.ErrInvalid)
				require.ErrorIs(t, seen.Add(ctx, dd, 1, local), distributeddata.ErrInvalid)
				require.ErrorIs(t, users.Clear(ctx, dd, local), distributeddata.ErrInvalid)
				_, err = users.Get(ctx, dd, "ada")
				require.NoError(t, err, "a read at Local never waits")
				for ch := range users.Changes(ctx, dd) {
					require.ErrorIs(t, ch.Err, distributeddata.ErrInvalid)
				}
				return err
			},
			"block": func() error { time.Sleep(4 * time.Second); return nil },
		} {
			err := distributeddata.ErrModify // of a function that ends this goroutine
			exited(func() {
				_, err = users.Update(ctx, dd, "ada", func(w *crdt.Writer, v *register) error {
					if name != "block" && name != "re-entry" {
						v.Set(w, "evil")
					}
					return f()
				}, local)
			})
			if name == "block" || name == "re-entry" {
				require.NoError(t, err, name)
			} else {
				require.ErrorIs(t, err, distributeddata.ErrModify, name)
			}
			err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
				users.UpdateIn(tx, "eve", func(v *register) {
					v.Set(tx.Writer, "Eve")
					tx.Fail(f())
				})
				return errors.New("refused")
			}, local)
			require.ErrorIs(t, err, distributeddata.ErrModify, name)
		}
		_, err = users.Update(ctx, dd, "ada", nil, local)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.Equal(t, map[string]string{"ada": "Ada"}, held(t, dd))

		for _, fail := range []func() error{func() error { return errors.New("no") },
			func() error { panic("boom") }} {
			s := distributeddata.NewShardedSet("coded", 4, crdt.NewORSet(badCodec{fail}))
			for name, f := range map[string]func() error{
				"add":      func() error { return s.Add(ctx, dd, 1, local) },
				"remove":   func() error { return s.Remove(ctx, dd, 1, local) },
				"contains": func() error { _, err := s.Contains(ctx, dd, 1); return err },
				"in": func() error {
					return distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
						s.AddIn(tx, 1)
						return nil
					}, local)
				},
			} {
				err := f()
				require.ErrorIs(t, err, distributeddata.ErrInvalid, name)
				require.ErrorContains(t, err, `collection "coded"`, name)
			}
			now, err := s.Of(dd.Snapshot())
			require.NoError(t, err)
			require.False(t, now.Contains(1))
			require.Zero(t, now.Len())
		}
	})
}

// A key without an encoding is reported, without a panic.
func TestSharded_KeysWithoutACodec(t *testing.T) {
	_, dd, stop := startMember()
	defer stop()
	type pair struct{ a, b int }
	err := distributeddata.NewShardedSet("pairs", 4, crdt.ORSet[pair]{}).Add(t.Context(), dd,
		pair{1, 2}, local)
	require.ErrorIs(t, err, crdt.ErrInvalid)
	require.ErrorIs(t, err, distributeddata.ErrInvalid)
}

// The changes of one update in several shards are seen as a whole or not at all, at every member
// and in every snapshot.
func TestSharded_UpdatesOfSeveralAreSeenWhole(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		ctx, end := context.WithCancel(context.Background())
		done := make(chan int)
		for i := range 3 {
			go func() {
				looked := 0
				for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
					now, err := users.Of(c.at(i).Snapshot())
					require.NoError(t, err)
					values := map[string]int{}
					for _, v := range now.All() {
						values[textOf(v)]++
					}
					require.LessOrEqual(t, len(values), 1, "all of one update")
					require.True(t, now.Len() == 0 || now.Len() == 20)
					looked++
				}
				done <- looked
			}()
		}
		for n := range 100 {
			require.NoError(t, distributeddata.Atomically(ctx, c.at(n%3),
				func(tx *distributeddata.Tx) error {
					for k := range 20 {
						users.UpdateIn(tx, fmt.Sprint(k), func(v *register) {
							v.Set(tx.Writer, fmt.Sprint(n))
						})
					}
					return nil
				}, distributeddata.All))
		}
		end()
		for range 3 {
			require.Positive(t, <-done)
		}
	})
}

// A loop with a slow body gets only the newest value.
func TestSharded_ChangesOfABusyLoopComeTogether(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, end := context.WithCancel(context.Background())
		var told []string
		go func() {
			for ch := range users.Changes(ctx, c.at(0)) {
				told = append(told, ch.Key+" "+textOf(ch.Value))
				time.Sleep(10 * time.Second)
			}
		}()
		for n := range 100 {
			_, err := users.Update(ctx, c.at(0), "ada", setTo(fmt.Sprint(n)), local)
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		end()
		synctest.Wait()
		require.Equal(t, []string{"ada 0", "ada 99"}, told)
	})
}

// Collections are durable by prefix, and restarted members find them.
func TestSharded_Durable(t *testing.T) {
	run(t, 3, distributeddata.Config{Durable: []string{"users#*"}}, func(c *cluster) {
		for k := range 50 {
			_, err := users.Update(context.Background(), c.at(k%3), fmt.Sprint(k), setTo("x"),
				distributeddata.Majority)
			require.NoError(t, err)
		}
		require.NoError(t, seen.Add(context.Background(), c.at(0), 1, distributeddata.All))
		err := distributeddata.Atomically(context.Background(), c.at(0),
			func(tx *distributeddata.Tx) error {
				users.UpdateIn(tx, "1", func(v *register) { v.Set(tx.Writer, "y") })
				seen.AddIn(tx, 2)
				return nil
			}, local)
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		c.restart()
		for _, m := range c.Live() {
			require.Len(t, held(t, c.dd[m]), 50)
			ok, err := seen.Contains(context.Background(), c.dd[m], 1)
			require.NoError(t, err)
			require.False(t, ok, "it was in memory")
		}
	})
}
