package bases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-go/concord/internal/causal"
)

var epoch = time.Unix(1_700_000_000, 0)

var limits = Limits{Count: 4, Bytes: 100, Pause: time.Second, Patience: 5 * time.Second}

// departed returns the vector of n replicas.
func departed(n int) causal.Vector {
	dots := make([]causal.Dot, n)
	for i := range dots {
		dots[i] = causal.Dot{Replica: causal.Replica(i+1) * 0xd1342543de82ef95, N: uint64(i%7 + 1)}
	}
	return causal.MakeVector(dots...)
}

// A vector decodes to itself, whichever base it is told with [R37].
func TestBase_ToldAndReadIsTheSameVector(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) causal.Vector {
		var dots []causal.Dot
		for r := range rapid.IntRange(0, 60).Draw(t, "replicas") {
			dots = append(dots, causal.Dot{Replica: causal.Replica(r + 1),
				N: rapid.SampledFrom([]uint64{0, 1, 1, 1, 2}).Draw(t, "n")})
		}
		return causal.MakeVector(dots...)
	})
	rapid.Check(t, func(t *rapid.T) {
		b, v := Of(draw.Draw(t, "base")), draw.Draw(t, "vector")
		name, ids, numbers := b.List(v)
		require.LessOrEqual(t, len(ids), v.Len())
		got, err := Vector(name, ids, numbers, func(n []byte) (causal.Vector, bool) {
			return b.Vector(), b.Is(n)
		})
		require.NoError(t, err)
		require.True(t, v.Equal(got), "%v with %v is read as %v", v, b.Vector(), got)
	})
}

// transfer plays the fetch of a base that a has and b does not, in parts of so many entries. lose
// says which messages are lost, and forge may change a part. It returns what waited, and a log.
func transfer(a, b *Set[string], base Base, entries int, lose func(i int) bool,
	forge func(p *Part)) (waited []string, log string) {
	now := epoch
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	var seen causal.Vector
	kept, ask := b.Await(now, "hello", 5, "a", causal.Digest(base.Name()), limits)
	line("kept %t, asks %t", kept, ask)
	for i := range 1000 {
		if _, _, ok := b.Fetching(); !ok {
			break
		}
		if !ask {
			now = now.Add(time.Second)
			if ask = b.Pursue(now, true, limits); !ask {
				line("gives up: %t", b.Waiting() == 0)
				continue
			}
		}
		m := b.Ask(now, limits)
		p, err := a.Answer(now, m, entries)
		line("known %d, after %d: %d entries, last %t, %v", len(m.Known), m.After%1000,
			len(p.Replicas), p.Last, err)
		if ask = false; lose(i) {
			line("lost")
			continue
		}
		if forge != nil {
			forge(&p)
		}
		var done bool
		waited, ask, done, err = b.Take(now, "a", p, seen, limits)
		if done || err != nil {
			line("done %t, %d waited, %v", done, len(waited), err)
		}
	}
	return waited, out.String()
}

func never(int) bool { return false }

// A base comes in parts, and what waited for it can be read then. A lost part is asked for again
// [R39].
func TestFetch_ALostPartIsAskedForAgain(t *testing.T) {
	v := departed(30)
	var a, b Set[string]
	a.Use(epoch, v, v)
	waited, log := transfer(&a, &b, a.Own(), 12, func(i int) bool { return i == 1 }, nil)
	require.Equal(t, []string{"hello"}, waited)
	require.Equal(t, 1, b.Len())
	require.Equal(t, 4, strings.Count(log, "known"), log)
	require.Equal(t, 1, strings.Count(log, "lost"))
	got, ok := b.Find(epoch, a.Own().Name())
	require.True(t, ok)
	require.True(t, got.Equal(v))
}

// A base that differs little from one that both know comes as the difference.
func TestFetch_OnlyWhatDiffers(t *testing.T) {
	v := departed(30)
	next := v.Set(4711, 1).Set(v.At(5).Replica, 0)
	var a, b Set[string]
	a.Use(epoch, v, v)
	b.Use(epoch, v, v)
	a.Use(epoch, next, next)
	_, log := transfer(&a, &b, a.Own(), 12, never, nil)
	require.Contains(t, log, "known 1, after 0: 2 entries, last true")
	got, ok := b.Find(epoch, a.Own().Name())
	require.True(t, ok)
	require.True(t, got.Equal(next))
}

// A base is taken only if its digest is the requested one [R39].
func TestFetch_AForgedOneIsRefused(t *testing.T) {
	v := departed(30)
	var a, b Set[string]
	a.Use(epoch, v, v)
	waited, log := transfer(&a, &b, a.Own(), 12, never, func(p *Part) {
		p.Numbers[len(p.Numbers)-1]++
	})
	require.Empty(t, waited)
	require.Contains(t, log, "does not match its digest")
	require.Zero(t, b.Len())
	require.Zero(t, b.Waiting())
	_, ask := b.Await(epoch, "later", 5, "a", causal.Digest(a.Own().Name()), limits)
	require.False(t, ask, "not at once again")
}

// One side has dropped the base meanwhile, or the member does not answer: the fetch ends.
func TestFetch_Ends(t *testing.T) {
	v := departed(30)
	var a, b, empty Set[string]
	a.Use(epoch, v, v)
	_, log := transfer(&empty, &b, a.Own(), 12, never, nil)
	require.Contains(t, log, "0 entries, last false")
	require.Zero(t, b.Waiting())
	b = Set[string]{}
	_, log = transfer(&a, &b, a.Own(), 12, func(int) bool { return true }, nil)
	require.Contains(t, log, "gives up: true")
}

// What is known and what waits is bounded, and ends [R38, R39].
func TestSet_IsBounded(t *testing.T) {
	var s Set[string]
	now := epoch
	for i := range 100 {
		_, ask := s.Await(now, "m", 10, "a", causal.Digest(Of(departed(40+i)).Name()), limits)
		require.Equal(t, i == 0, ask)
		s.learn(now, Of(departed(40+i)), causal.Vector{})
		require.LessOrEqual(t, s.Len(), Max)
	}
	require.Equal(t, limits.Count, s.Waiting())
	own := departed(200)
	s.Use(now, own, own)
	now = now.Add(2 * keep)
	s.Renew(now, own, func(causal.Replica) bool { return true })
	require.Equal(t, 1, s.Len(), "its own is kept")
	require.False(t, s.Pursue(now, true, limits))
	require.Zero(t, s.Waiting())
}

// Replicas that depart are taken into the base, four at a time; larger bases that are covered are
// preferred [R38].
func TestRenew_TakesInWhatHasDeparted(t *testing.T) {
	var s Set[string]
	seen := departed(Few + 10)
	runs := map[causal.Replica]bool{}
	for d := range seen.All() {
		runs[d.Replica] = true
	}
	gone := func(n int) {
		for r := range runs {
			if n--; n < 0 {
				return
			}
			delete(runs, r)
		}
	}
	gone(renewAt - 1)
	s.Renew(epoch, seen, func(r causal.Replica) bool { return runs[r] })
	require.Zero(t, s.Own().Vector().Len())
	gone(1)
	s.Renew(epoch, seen, func(r causal.Replica) bool { return runs[r] })
	require.Equal(t, renewAt, s.Own().Vector().Len())
	more := departed(Few + 20)
	s.learn(epoch, Of(more), seen)
	require.Equal(t, renewAt, s.Own().Vector().Len(), "it is not covered")
	s.Renew(epoch, more, func(r causal.Replica) bool { return true })
	require.Equal(t, Few+20, s.Own().Vector().Len())
	s.Risen(epoch, departed(2*MaxDiffering))
	require.Equal(t, 2*MaxDiffering, s.Own().Vector().Len())
}

// FuzzTake feeds parts of bases as a member may send them: nothing panics, nothing is taken whose
// digest is another one, and what waits stays within its bounds.
func FuzzTake(f *testing.F) {
	f.Add(uint8(12), uint8(0), []byte{}, true)
	f.Add(uint8(3), uint8(1), []byte{1, 2, 3, 255}, false)
	f.Fuzz(func(t *testing.T, entries, change uint8, noise []byte, last bool) {
		v := departed(30)
		var a, b Set[string]
		a.Use(epoch, v, v)
		i := 0
		_, _ = transfer(&a, &b, a.Own(), int(entries%40)+1, never, func(p *Part) {
			if i++; i != int(change%4) {
				return
			}
			p.Last = last
			for j, x := range noise {
				switch {
				case len(p.Replicas) == 0:
				case x%4 == 0:
					p.Replicas[j%len(p.Replicas)] = causal.Replica(x)
				case x%4 == 1 && len(p.Numbers) > 0:
					p.Numbers[j%len(p.Numbers)] = uint64(x)
				case x%4 == 2:
					p.Numbers = p.Numbers[:len(p.Numbers)*int(x)/256]
				default:
					p.From = noise[:min(j, len(noise))]
				}
			}
		})
		if got, ok := b.Find(epoch, a.Own().Name()); ok && !got.Equal(v) {
			t.Fatalf("took %v for %v", got, v)
		}
		if b.Waiting() > limits.Count {
			t.Fatalf("%d messages wait", b.Waiting())
		}
	})
}
