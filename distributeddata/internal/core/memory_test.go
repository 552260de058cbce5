package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// randomMemory returns a memory of some of six members.
func randomMemory(r *rand.Rand) (m memory) {
	for i := range 6 {
		if r.IntN(3) == 0 {
			continue
		}
		x := remembered{
			name: string(rune('a' + i)), version: r.Uint64N(3), rank: rank(1 + r.IntN(4)),
			inc: incarnation{1 + r.Uint64N(3), causal.Replica(1 + r.Uint64N(3))},
		}
		if x.rank == gone {
			x.order, x.handed = r.Uint64N(3), r.IntN(2) == 0
		}
		m = m.with(x)
	}
	return m
}

func TestMemory_MergeIsAJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b, c := randomMemory(r), randomMemory(r), randomMemory(r)
		require.Equal(t, a.merge(b), b.merge(a))
		require.Equal(t, a.merge(b).merge(c), a.merge(b.merge(c)))
		require.Equal(t, a, a.merge(a))
		require.Equal(t, a, a.merge(memory{}))
		require.Equal(t, a.merge(b), a.merge(b).merge(b), "the join is above both")
	}
}

// Merging a memory without news returns one of the two operands: no digest is computed again.
func TestMemory_AMergeThatBringsNothingNewReturnsTheLargerOne(t *testing.T) {
	a, b := memory{}, memory{}
	for i := range 50 {
		x := remembered{name: fmt.Sprintf("%02d", i), inc: incarnation{1, causal.Replica(i + 1)},
			rank: joining}
		a = a.with(x)
		if x.rank = in; i%2 == 0 {
			b = b.with(x)
		}
	}
	all := a.merge(b)
	require.NotEqual(t, a.digest, all.digest)
	for _, m := range []memory{all.merge(a), a.merge(all), all.merge(b), b.merge(all)} {
		require.Same(t, &all.all[0], &m.all[0])
		require.Equal(t, all.digest, m.digest)
	}
}

func TestMemory_DigestsAreEqualIfMemoriesAre(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[uint64]string{}
	for range 50_000 {
		m := randomMemory(r)
		text := fmt.Sprint(m.all)
		if had, ok := seen[m.digest]; ok {
			require.Equal(t, had, text)
		}
		seen[m.digest] = text
	}
	texts := map[string]bool{}
	for _, text := range seen {
		require.False(t, texts[text], "two digests of %s", text)
		texts[text] = true
	}
	require.Zero(t, memory{}.digest)
}

func TestMemory_CountsThoseThatAreInOrGoing(t *testing.T) {
	m := memory{}
	for i, rank := range []rank{joining, in, in, going, gone} {
		m = m.with(remembered{name: fmt.Sprint(i), rank: rank, inc: incarnation{1, 1}})
	}
	require.Equal(t, 3, m.size)
}

// If there are more than fit, the newest are kept, in whatever order they were merged.
func TestMemory_TheNewestOfTheGoneAreKept(t *testing.T) {
	var all []remembered
	for i := range maxGone + 100 {
		all = append(all, remembered{name: fmt.Sprintf("m%05d", i), rank: gone, inc: incarnation{
			1, 1}, order: uint64((i * 7919) % (maxGone + 100))})
	}
	half := len(all) / 2
	whole := remember(prune(slices.Clone(all), maxGone))
	parts := remember(prune(slices.Clone(all[half:]), maxGone)).merge(
		remember(prune(slices.Clone(all[:half]), maxGone)))
	require.Len(t, whole.all, maxGoneBytes/all[0].maxSize())
	require.Equal(t, whole.digest, parts.digest)
	require.False(t, slices.ContainsFunc(whole.all, func(r remembered) bool {
		return r.order < 100
	}))
	require.Equal(t, absent, whole.of("m00000").rank)
}

// The newest of the members that have gone without handing over may return, in any number of those
// that have.
func TestMemory_TheNewestThatHaveNotHandedOverMayReturn(t *testing.T) {
	m := memory{}
	name := func(i int) string { return fmt.Sprintf("m%03d", (i*79)%500) }
	for i := range 3 * maxReturning {
		m = m.with(remembered{name: name(i), rank: in, inc: incarnation{1, causal.Replica(i + 1)}})
		m = m.leave(name(i), i%3 > 0)
	}
	more := maxReturning - 10
	for i := range 3 * maxReturning {
		x := m.of(name(i))
		require.Equal(t, i%3 == 0, m.mayReturn(x), x)
	}
	for i := range more {
		m = m.with(remembered{name: fmt.Sprint(i), rank: in, inc: incarnation{1, 1}})
		m = m.leave(fmt.Sprint(i), false)
	}
	for i := range 3 * maxReturning {
		x := m.of(name(i))
		require.Equal(t, i%3 == 0 && i >= 3*more, m.mayReturn(x), x)
	}
}

func TestMemory_CrossesTheWire(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		m := randomMemory(r)
		got, err := decodeMemory(m.encode())
		require.NoError(t, err)
		require.Equal(t, m.digest, got.digest)
		require.Equal(t, m.size, got.size)
	}
}

func TestMemory_LiesAreRefused(t *testing.T) {
	ok := func() *pb.RememberedMember {
		return &pb.RememberedMember{Name: "a", Version: 1, Number: 1, Replica: 1, Stage: 2}
	}
	for name, lie := range map[string]func(*pb.RememberedMember){
		"no name":            func(m *pb.RememberedMember) { m.Name = "" },
		"name of a megabyte": func(m *pb.RememberedMember) { m.Name = strings.Repeat("x", 1<<20) },
		"largest version":    func(m *pb.RememberedMember) { m.Version = 1<<64 - 1 },
		"largest number":     func(m *pb.RememberedMember) { m.Number = 1<<64 - 1 },
		"no number":          func(m *pb.RememberedMember) { m.Number = 0 },
		"no replica":         func(m *pb.RememberedMember) { m.Replica = 0 },
		"no stage":           func(m *pb.RememberedMember) { m.Stage = 0 },
		"unknown stage":      func(m *pb.RememberedMember) { m.Stage = 5 },
		"stage that wraps":   func(m *pb.RememberedMember) { m.Stage = 1<<8 + 2 },
		"one in hands over":  func(m *pb.RememberedMember) { m.Handed = true },
		"order of one in":    func(m *pb.RememberedMember) { m.Order = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			m := ok()
			lie(m)
			_, err := memoryIn([]*pb.RememberedMember{m})
			require.ErrorIs(t, err, errMalformed)
			require.Less(t, len(err.Error()), 500)
		})
	}
	_, err := memoryIn([]*pb.RememberedMember{ok(), ok()})
	require.ErrorContains(t, err, "order of members")
	var many []*pb.RememberedMember
	for i := range maxLive + 1 {
		m := ok()
		m.Name = fmt.Sprintf("%09d", i)
		many = append(many, m)
	}
	_, err = memoryIn(many)
	require.ErrorContains(t, err, "10001 members that are not gone, over the limit of 10000")
	_, err = memoryIn(append(many, make([]*pb.RememberedMember, maxGone)...))
	require.ErrorContains(t, err, "20001 members, over the limit of 20000")
}

func FuzzMemory(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		f.Add(randomMemory(r).encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMemory(b)
		if err != nil {
			return
		}
		again, err := decodeMemory(m.encode())
		require.NoError(t, err)
		require.Equal(t, m.digest, again.digest)
		require.Equal(t, m.digest, m.merge(again).digest)
	})
}
