package datatest_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/lab/netem"
)

var rounds = flag.Int("rounds", 1, "how often each scenario is played")

// play runs a scenario as often as requested.
func play(t *testing.T, n int, scenario func(t *testing.T, c *members, seed uint64)) {
	for seed := range uint64(*rounds) {
		t.Run(fmt.Sprint("seed=", seed+1), func(t *testing.T) { scenario(t, start(t, n), seed+1) })
	}
}

// TestReal_Insert makes five members add 200 numbers to one set, each its own, while two of them
// are cut off and come back. Numbers acknowledged by a majority are in the next majority read, and
// all numbers are everywhere in the end.
func TestReal_Insert(t *testing.T) {
	play(t, 5, func(t *testing.T, c *members, _ uint64) {
		const total = 200
		majority := distributeddata.Majority
		left, right, all := []int{0, 1, 2}, []int{3, 4}, []int{0, 1, 2, 3, 4}
		insert := func(some []int, from, to int, level distributeddata.Consistency) {
			t.Helper()
			err := each(some, func(i int) error {
				for v := from + i; v < to; v += 5 {
					if err := c.try(i, command{Do: "add", Value: v, Level: level}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		insert(all, 0, 50, majority)
		c.part(left, right)
		insert(left, 50, 150, majority)
		for _, i := range right {
			for { // until the write is made here, which may take a busy machine longer
				err := c.try(i, command{Do: "add", Value: 50 + i, Level: majority,
					Within: 300 * time.Millisecond})
				if err == nil && c.parted() {
					t.Fatalf("a majority write of member %d, which is cut off from three of five, was acknowledged", i)
				}
				if errors.Is(err, errGone) {
					t.Fatal(err)
				}
				if err == nil || errors.Is(err, distributeddata.ErrQuorum) {
					break
				}
			}
		}
		insert(right, 55, 150, distributeddata.Local)
		c.heal()
		insert(all, 150, total, majority)
		for _, i := range all {
			if got := c.dump(i, majority).Numbers; len(got) != total {
				t.Fatalf("member %d reads %d numbers at a majority, want %d", i, len(got), total)
			}
		}
		got := c.alike().Numbers
		slices.Sort(got)
		for v := range total {
			if got[v] != v {
				t.Fatalf("numbers %v: want 0 to %d", got, total-1)
			}
		}
	})
}

// TestReal_Chaos splits five members into two and three, writes on both sides, kills one of them
// during the split, heals, and starts a new process in place of the dead one.
func TestReal_Chaos(t *testing.T) {
	play(t, 5, func(t *testing.T, c *members, _ uint64) {
		for i := range 5 {
			for _, level := range []distributeddata.Consistency{
				distributeddata.Local, distributeddata.Nodes(2), distributeddata.All,
				distributeddata.Local, distributeddata.Majority,
			} {
				c.do(i, command{Do: "hit", Value: 1, Level: level})
				c.do(i, command{Do: "book", Value: i - 2, Level: level})
			}
			c.do(i, command{Do: "add", Value: i, Level: distributeddata.Local})
		}
		c.do(0, command{Do: "mark", Value: 7, Level: distributeddata.All})
		c.do(1, command{Do: "delete", Level: distributeddata.All})
		if d := c.alike(); d.Hits != 25 || d.Balance != 0 || d.Gone != 0 || len(d.Numbers) != 5 {
			t.Fatalf("before the split: %+v", d)
		}

		c.part([]int{0, 1}, []int{2, 3, 4})
		for _, i := range []int{0, 2, 3} {
			c.do(i, command{Do: "hit", Value: 1, Level: distributeddata.Nodes(2)})
		}
		c.do(0, command{Do: "remove", Value: 1, Level: distributeddata.Local})
		c.do(3, command{Do: "add", Value: 1, Level: distributeddata.Nodes(2)})
		want := []uint64{26, 26, 27, 27, 27}
		if !c.parted() {
			want = []uint64{28, 28, 28, 28, 28}
		}
		c.eventually(func() string {
			for i, n := range want {
				if got := c.dump(i, distributeddata.Local).Hits; got != n {
					return fmt.Sprintf("member %d has %d hits, want %d", i, got, n)
				}
			}
			return ""
		})
		c.kill(4)
		c.heal()
		whole := func(hits uint64) {
			t.Helper()
			c.eventually(func() string {
				d := c.alike()
				if c.parted() && !slices.Contains(d.Numbers, 1) {
					return "1, which was added again without knowing of its removal, is not there"
				}
				if d.Hits != hits || d.Gone != 0 {
					return fmt.Sprintf("%d hits, want %d; %d of what was deleted", d.Hits,
						hits, d.Gone)
				}
				return ""
			})
		}
		whole(28)
		c.restart(4)
		c.do(4, command{Do: "hit", Value: 1, Level: distributeddata.Majority})
		whole(29)
	})
}

// TestReal_Delta makes four members change random entries over links that delay, reorder, lose,
// duplicate and corrupt. Two of them are killed half-way and restarted. The last writes of a member
// that dies are at a majority, so nothing may be missing.
func TestReal_Delta(t *testing.T) {
	play(t, 4, func(t *testing.T, c *members, seed uint64) {
		if c.net != nil {
			c.net.SetAll(netem.Link{
				Delay: time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.02, Duplicate: 0.05,
				Corrupt: 0.02,
			})
		}
		all := []int{0, 1, 2, 3}
		hits, booked := make([]int, len(all)), make([]int, len(all))
		half := func(part uint64) {
			t.Helper()
			err := each(all, func(i int) error {
				random := rand.New(rand.NewPCG(seed, part<<8|uint64(i)))
				for range 16 + random.IntN(5) {
					do := someChange(random)
					if err := c.try(i, do); err != nil &&
						!errors.Is(err, distributeddata.ErrQuorum) {
						return err
					}
					// A write that a majority did not confirm in time is applied here, and spreads.
					switch do.Do {
					case "hit":
						hits[i] += do.Value
					case "book":
						booked[i] += do.Value
					}
				}
				hits[i]++
				return c.try(i, command{Do: "hit", Value: 1, Level: distributeddata.Majority})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		half(1)
		for _, i := range []int{0, 2} {
			c.kill(i)
			c.restart(i)
		}
		half(2)
		c.heal()
		d := c.alike()
		wantHits, wantBooked := 0, 0
		for _, i := range all {
			wantHits, wantBooked = wantHits+hits[i], wantBooked+booked[i]
		}
		if d.Hits != uint64(wantHits) || d.Balance != int64(wantBooked) {
			t.Errorf("%d hits and %d booked, want %d and %d", d.Hits, d.Balance, wantHits,
				wantBooked)
		}
		t.Logf("%d hits, %d booked, numbers %v", d.Hits, d.Balance, d.Numbers)
	})
}

// someChange returns a random change, one in ten at more than one replica.
func someChange(random *rand.Rand) command {
	do := command{Level: distributeddata.Local}
	switch n := random.IntN(100); {
	case n < 5:
		do.Level = distributeddata.Nodes(2)
	case n < 10:
		do.Level = distributeddata.Majority
	}
	switch random.IntN(4) {
	case 0:
		do.Do, do.Value = "hit", random.IntN(100)
	case 1:
		do.Do, do.Value = "book", -random.IntN(10)
	case 2:
		do.Do, do.Value = "add", random.IntN(10)
	default:
		do.Do, do.Value = "remove", random.IntN(10)
	}
	return do
}
