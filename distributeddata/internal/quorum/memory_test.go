package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// randomMemory returns a memory of some of six members.
func randomMemory(r *rand.Rand) (m Memory) {
	for i := range 6 {
		if r.IntN(3) == 0 {
			continue
		}
		x := Member{
			Name: string(rune('a' + i)), Version: r.Uint64N(3), Rank: Rank(1 + r.IntN(4)),
			Inc: Incarnation{1 + r.Uint64N(3), causal.Replica(1 + r.Uint64N(3))},
		}
		if x.Rank == Gone {
			x.Order, x.Handed = r.Uint64N(3), r.IntN(2) == 0
		}
		m = m.With(x)
	}
	return m
}

func TestMemory_MergeIsAJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b, c := randomMemory(r), randomMemory(r), randomMemory(r)
		require.Equal(t, a.Merge(b), b.Merge(a))
		require.Equal(t, a.Merge(b).Merge(c), a.Merge(b.Merge(c)))
		require.Equal(t, a, a.Merge(a))
		require.Equal(t, a, a.Merge(Memory{}))
		require.Equal(t, a.Merge(b), a.Merge(b).Merge(b), "the join is above both")
	}
}

// Merging a memory without news returns one of the two operands: no digest is computed again.
func TestMemory_MergeOfNothingNewReturnsTheLargerOne(t *testing.T) {
	a, b := Memory{}, Memory{}
	for i := range 50 {
		x := Member{Name: fmt.Sprintf("%02d", i), Inc: Incarnation{1, causal.Replica(i + 1)},
			Rank: Joining}
		a = a.With(x)
		if x.Rank = In; i%2 == 0 {
			b = b.With(x)
		}
	}
	all := a.Merge(b)
	require.NotEqual(t, a.digest, all.digest)
	for _, m := range []Memory{all.Merge(a), a.Merge(all), all.Merge(b), b.Merge(all)} {
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
	require.Zero(t, Memory{}.digest)
}

func TestMemory_CountsThoseThatAreInOrGoing(t *testing.T) {
	m := Memory{}
	for i, rank := range []Rank{Joining, In, In, Going, Gone} {
		m = m.With(Member{Name: fmt.Sprint(i), Rank: rank, Inc: Incarnation{1, 1}})
	}
	require.Equal(t, 3, m.size)
}

// If there are more than fit, the newest are kept, in whatever order they were merged.
func TestMemory_TheNewestOfTheGoneAreKept(t *testing.T) {
	var all []Member
	for i := range maxGone + 100 {
		all = append(all, Member{Name: fmt.Sprintf("m%05d", i), Rank: Gone, Inc: Incarnation{
			1, 1}, Order: uint64((i * 7919) % (maxGone + 100))})
	}
	half := len(all) / 2
	whole := Remember(prune(slices.Clone(all), maxGone))
	parts := Remember(prune(slices.Clone(all[half:]), maxGone)).Merge(
		Remember(prune(slices.Clone(all[:half]), maxGone)))
	require.Len(t, whole.all, maxGoneBytes/all[0].maxSize())
	require.Equal(t, whole.digest, parts.digest)
	require.False(t, slices.ContainsFunc(whole.all, func(r Member) bool {
		return r.Order < 100
	}))
	require.Equal(t, Absent, whole.Of("m00000").Rank)
}

// The newest of the members that have gone without handing over may return, in any number of those
// that have.
func TestMemory_TheNewestThatHaveNotHandedOverMayReturn(t *testing.T) {
	m := Memory{}
	name := func(i int) string { return fmt.Sprintf("m%03d", (i*79)%500) }
	for i := range 3 * maxReturning {
		m = m.With(Member{Name: name(i), Rank: In, Inc: Incarnation{1, causal.Replica(i + 1)}})
		m = m.Leave(name(i), i%3 > 0)
	}
	more := maxReturning - 10
	for i := range 3 * maxReturning {
		x := m.Of(name(i))
		require.Equal(t, i%3 == 0, m.MayReturn(x), x)
	}
	for i := range more {
		m = m.With(Member{Name: fmt.Sprint(i), Rank: In, Inc: Incarnation{1, 1}})
		m = m.Leave(fmt.Sprint(i), false)
	}
	for i := range 3 * maxReturning {
		x := m.Of(name(i))
		require.Equal(t, i%3 == 0 && i >= 3*more, m.MayReturn(x), x)
	}
}

// However many members have gone, and however long their names are, the memory of them fits into
// one message, together with a thousand running members. A larger message would be rejected by its
// receiver, and no member could be counted any more.
func TestBounds_AMemoryFitsIntoOneMessage(t *testing.T) {
	member := func(kind string, i, size int, r Rank) Member {
		m := Member{Name: fmt.Sprintf("%s%0*d", kind, size-1, i), Version: MaxOrdinal,
			Inc: Incarnation{MaxOrdinal, causal.Replica(1<<63 + uint64(i))}, Rank: r}
		if r == Gone {
			m.Order = MaxOrdinal - uint64(i)
		}
		return m
	}
	for _, size := range []int{6, 20, 40, MaxName} {
		entry := member("g", 0, size, Gone).maxSize()
		for _, n := range []int{maxGoneBytes/entry - 1, maxGoneBytes / entry,
			maxGoneBytes/entry + 1, maxGone, maxGone + 1} {
			var all []Member
			for i := range n {
				all = append(all, member("g", i, size, Gone))
			}
			for i := range 1000 {
				all = append(all, member("r", i, 20, In))
			}
			m := Remember(prune(all, maxGone))
			require.Equal(t, min(n, maxGoneBytes/entry), m.Count(Gone),
				"of %d with names of %d bytes", n, size)
			b, err := proto.Marshal(&pb.Members{Members: Encode(m.all),
				Name: member("r", 0, MaxName, In).Name, Least: 1000})
			require.NoError(t, err)
			require.LessOrEqual(t, len(b), wire.MaxPayload)
			again, err := Decode(Encode(m.all))
			require.NoError(t, err)
			require.Equal(t, m.digest, again.digest)
		}
	}
}

func TestMemory_CrossesTheWire(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		m := randomMemory(r)
		got, err := Decode(Encode(m.all))
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
			_, err := Decode([]*pb.RememberedMember{m})
			require.ErrorIs(t, err, errMalformed)
			require.Less(t, len(err.Error()), 500)
		})
	}
	_, err := Decode([]*pb.RememberedMember{ok(), ok()})
	require.ErrorContains(t, err, "order of members")
	var many []*pb.RememberedMember
	for i := range MaxLive + 1 {
		m := ok()
		m.Name = fmt.Sprintf("%09d", i)
		many = append(many, m)
	}
	_, err = Decode(many)
	require.ErrorContains(t, err, "10001 members that are not gone, over the limit of 10000")
	_, err = Decode(append(many, make([]*pb.RememberedMember, maxGone)...))
	require.ErrorContains(t, err, "20001 members, over the limit of 20000")
}

func FuzzMemory(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		b, err := proto.Marshal(&pb.Members{Members: Encode(randomMemory(r).all)})
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in pb.Members
		if proto.Unmarshal(b, &in) != nil {
			return
		}
		m, err := Decode(in.Members)
		if err != nil {
			return
		}
		again, err := Decode(Encode(m.all))
		require.NoError(t, err)
		require.Equal(t, m.digest, again.digest)
		require.Equal(t, m.digest, m.Merge(again).digest)
	})
}
