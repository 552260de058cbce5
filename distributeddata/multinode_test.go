package distributeddata_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

// The scenarios that replicated data has been tested with elsewhere, with their numbers of nodes
// and operations, on virtual clusters.

var numbers = distributeddata.NewKey("numbers", crdt.ORSet[int]{})

// insertAll makes node i of n add the numbers that are i modulo n, on all nodes at once.
func (c *cluster) insertAll(count int, level distributeddata.Consistency) (failed []int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := len(c.Live())
	for i := range n {
		wg.Go(func() {
			for v := i; v < count; v += n {
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				_, err := numbers.Update(ctx, c.at(i),
					func(w *crdt.Writer, s *crdt.ORSet[int]) error {
						s.Add(w, v)
						return nil
					}, level)
				cancel()
				if err != nil {
					mu.Lock()
					failed = append(failed, v)
					mu.Unlock()
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	return failed
}

func (c *cluster) hasAll(i, count int, at ...distributeddata.Consistency) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	v, err := numbers.Get(ctx, c.at(i), at...)
	require.NoError(c.t, err)
	require.Equal(c.t, count, v.Len(), "node %d", i)
}

func TestMultiNode_Insert200(t *testing.T) {
	five := distributeddata.Config{MinMembers: 5}
	t.Run("local", func(t *testing.T) {
		run(t, 5, five, func(c *cluster) {
			require.Empty(t, c.insertAll(200, local))
			time.Sleep(time.Second)
			for i := range 5 {
				c.hasAll(i, 200)
			}
		})
	})
	t.Run("majority", func(t *testing.T) {
		run(t, 5, five, func(c *cluster) {
			require.Empty(t, c.insertAll(200, distributeddata.Majority))
			for i := range 5 {
				c.hasAll(i, 200, distributeddata.Majority)
			}
		})
	})
	t.Run("local, 3 and 2 apart for 5s", func(t *testing.T) {
		run(t, 5, five, func(c *cluster) {
			c.Net.Partition(addresses(c, 0, 1, 2), addresses(c, 3, 4))
			time.AfterFunc(5*time.Second, c.Net.Heal)
			require.Empty(t, c.insertAll(200, local))
			time.Sleep(15 * time.Second)
			for i := range 5 {
				c.hasAll(i, 200)
			}
		})
	})
	t.Run("majority, 3 and 2 apart for 5s", func(t *testing.T) {
		run(t, 5, five, func(c *cluster) {
			c.Net.Partition(addresses(c, 0, 1, 2), addresses(c, 3, 4))
			time.AfterFunc(5*time.Second, c.Net.Heal)
			for _, v := range c.insertAll(200, distributeddata.Majority) {
				require.GreaterOrEqual(t, v%5, 3, "only the side of two fails")
			}
			time.Sleep(2 * time.Second)
			for _, i := range []int{3, 4} {
				c.hasAll(i, 200, distributeddata.Majority) // failed updates continue to spread
			}
		})
	})
}

func TestMultiNode_ChaosKeepsExactValues(t *testing.T) {
	hits := distributeddata.NewKey("hits", crdt.GCounter{})
	tags := distributeddata.NewKey("tags", crdt.ORSet[string]{})
	gone := distributeddata.NewKey("gone", crdt.GSet[string]{})
	run(t, 5, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		bg := context.Background()
		inc := func(i int, at ...distributeddata.Consistency) {
			_, err := hits.Update(bg, c.at(i), func(w *crdt.Writer, v *crdt.GCounter) error {
				v.Add(w, 1)
				return nil
			}, stated(at))
			require.NoError(t, err)
		}
		count := func(i int, want uint64) {
			t.Helper()
			v, err := hits.Get(bg, c.at(i))
			require.NoError(t, err)
			require.Equal(t, want, v.Value(), "node %d", i)
		}
		for i := range 5 {
			for _, level := range []distributeddata.Consistency{local,
				distributeddata.Nodes(2), distributeddata.All, local,
				distributeddata.Majority} {
				inc(i, level)
			}
			_, err := tags.Update(bg, c.at(i), func(w *crdt.Writer, v *items) error {
				v.Add(w, fmt.Sprint("tag-", i))
				return nil
			}, local)
			require.NoError(t, err)
		}
		_, err := gone.Update(bg, c.at(0), func(w *crdt.Writer, v *crdt.GSet[string]) error {
			v.Add(w, "x")
			return nil
		}, distributeddata.All)
		require.NoError(t, err)
		require.NoError(t, gone.Delete(bg, c.at(1), distributeddata.All))
		time.Sleep(5 * time.Second)
		for i := range 5 {
			count(i, 25)
		}
		c.Net.Partition(addresses(c, 0, 1), addresses(c, 2, 3, 4))
		inc(0, distributeddata.Nodes(2))
		inc(2, distributeddata.Nodes(2))
		inc(3, distributeddata.Nodes(2))
		_, err = tags.Update(bg, c.at(0), func(w *crdt.Writer, v *items) error {
			v.Remove(w, "tag-1")
			return nil
		}, local)
		require.NoError(t, err)
		_, err = tags.Update(bg, c.at(3), func(w *crdt.Writer, v *items) error {
			v.Add(w, "tag-1")
			return nil
		}, local)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		for _, i := range []int{0, 1} {
			count(i, 26)
		}
		for _, i := range []int{2, 3, 4} {
			count(i, 27)
		}
		c.Crash(c.Member(4))
		c.Net.Heal()
		time.Sleep(10 * time.Second)
		for _, i := range []int{0, 1, 2, 3} {
			count(i, 28)
			v, err := tags.Get(bg, c.at(i))
			require.NoError(t, err)
			require.Equal(t, []string{"tag-0", "tag-1", "tag-2", "tag-3", "tag-4"},
				slices.Collect(v.All()), "the concurrent add wins")
			_, err = gone.Get(bg, c.at(i))
			require.ErrorIs(t, err, distributeddata.ErrNotFound, "deleted stays deleted")
		}
	})
}

// Four nodes, 31 to 40 random operations each, delays up to half a second, one message in ten lost.
func TestMultiNode_RandomOperationsEndEqual(t *testing.T) {
	total := distributeddata.NewKey("total", crdt.PNCounter{})
	perKey := distributeddata.NewKey("per-key", crdt.PNCounterMap[string]{})
	index := distributeddata.NewKey("index", crdt.ORMultiMap[string, string]{})
	for seed := range uint64(5) {
		run(t, 4, distributeddata.Config{MinMembers: 4}, func(c *cluster) {
			c.Net.SetAll(simnet.Faults{Jitter: 500 * time.Millisecond, Reorder: true, Loss: 0.1})
			var wg sync.WaitGroup
			var mu sync.Mutex
			var sum int64
			for i := range 4 {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				wg.Go(func() {
					for range 31 + r.IntN(10) {
						n, name := int64(r.IntN(100)), string(rune('a'+r.IntN(10)))
						level := local
						if x := r.IntN(20); x == 0 {
							level = distributeddata.Nodes(2)
						} else if x == 1 {
							level = distributeddata.Majority
						}
						ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
						// The level may fail under loss; the update stays.
						_, _ = total.Update(ctx, c.at(i),
							func(w *crdt.Writer, v *crdt.PNCounter) error {
								v.Add(w, n-9)
								return nil
							}, level)
						_, _ = perKey.Update(ctx, c.at(i),
							func(w *crdt.Writer, v *crdt.PNCounterMap[string]) error {
								v.Add(w, name, 1)
								return nil
							}, local)
						_, _ = index.Update(ctx, c.at(i),
							func(w *crdt.Writer, v *crdt.ORMultiMap[string, string]) error {
								if i == 0 && n < 30 {
									v.RemoveKeys(w, "k")
								} else {
									v.Add(w, "k", name)
								}
								return nil
							}, local)
						cancel()
						mu.Lock()
						sum += n - 9
						mu.Unlock()
						time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
					}
				})
			}
			wg.Wait()
			c.Net.Heal()
			c.Net.SetAll(simnet.Faults{})
			time.Sleep(10 * time.Second)
			want, err := total.Get(context.Background(), c.at(0))
			require.NoError(t, err)
			require.Equal(t, sum, want.Value())
			for i := range 4 {
				require.Equal(t, c.at(0).Status().Seen, c.at(i).Status().Seen)
				for _, s := range []func(int) string{
					func(i int) string {
						v, _ := total.Get(context.Background(), c.at(i))
						return fmt.Sprint(v.Value())
					},
					func(i int) string {
						v, _ := perKey.Get(context.Background(), c.at(i))
						return v.String()
					},
					func(i int) string {
						v, _ := index.Get(context.Background(), c.at(i))
						return v.String()
					},
				} {
					require.Equal(t, s(0), s(i), "node %d", i)
				}
				require.Zero(t, c.at(i).Status().Diverged)
			}
		})
	}
}

// Node 2 is cut off while "b" and "d" are written; "c" must not be visible there before "b".
func TestMultiNode_LaterElementsWaitForEarlierOnes(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		require.NoError(t, c.add(0, "a", distributeddata.All))
		c.Net.Partition(addresses(c, 0, 1), addresses(c, 2))
		require.NoError(t, c.add(0, "b", distributeddata.Majority))
		require.NoError(t, c.add(1, "d", distributeddata.Majority))
		time.Sleep(2 * time.Second)
		c.Net.Heal()
		require.NoError(t, c.add(0, "c"))
		for range 400 {
			time.Sleep(10 * time.Millisecond)
			got := c.elements(2)
			if slices.Contains(got, "c") {
				require.Equal(t, []string{"a", "b", "c", "d"}, got)
			}
		}
		require.Equal(t, []string{"a", "b", "c", "d"}, c.elements(2))
	})
}

// 500 small and 15 large sets reach a joining member, in messages within the budget.
func TestMultiNode_NewMemberGetsManyEntries(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		fill := func(name string, n int, e string) {
			for i := range n {
				k := distributeddata.NewKey(fmt.Sprint(name, i), items{})
				_, err := k.Update(context.Background(), c.at(0),
					func(w *crdt.Writer, v *items) error {
						v.Add(w, e)
						return nil
					}, local)
				require.NoError(t, err)
			}
		}
		fill("small-", 500, strings.Repeat("a", 100))
		fill("large-", 15, strings.Repeat("ä", 4000))
		m := c.Join()
		c.ready(m)
		require.Equal(t, 515, c.dd[m].Status().Keys)
		require.Zero(t, c.dd[m].Status().Malformed)
		for kind, n := range c.at(0).Status().Sent {
			require.LessOrEqual(t, n.Bytes/n.Messages, uint64(256<<10), kind)
		}
	})
}
