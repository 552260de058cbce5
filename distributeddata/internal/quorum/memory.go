package quorum

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Rank is the stage of a member in the count of quorums. Under one version it only rises [M1].
type Rank uint8

// The ranks, in order.
const (
	Absent  Rank = iota
	Joining      // known, but not counted
	In           // counted; votes once it is ready
	Going        // counted; no longer votes
	Gone         // no longer counted
)

// Incarnation names one process of a member. Of two, the one with the larger number is the later.
type Incarnation struct {
	Number  uint64
	Replica causal.Replica
}

// Less orders incarnations: the earlier one is less.
func (i Incarnation) Less(j Incarnation) bool {
	return i.Number < j.Number || i.Number == j.Number && i.Replica < j.Replica
}

// Member is what a memory holds of one member.
type Member struct {
	Name    string
	Version uint64 // rises each time the member comes back after it was gone
	Inc     Incarnation
	Rank    Rank
	Order   uint64 // of a member that is gone: larger than that of members gone before
	Handed  bool   // of a member that is gone: others have all that this incarnation ever did
}

// Counts reports whether quorums are counted over the member.
func (r Member) Counts() bool { return r.Rank == In || r.Rank == Going }

// Outside reports whether the member is neither counted nor to be counted.
func (r Member) Outside() bool { return r.Rank == Absent || r.Rank == Gone }

// merge merges what two memories hold of one member: the larger version wins; under one version
// each part is the larger of both.
func (r Member) merge(o Member) Member {
	switch {
	case r.Version > o.Version:
		return r
	case r.Version < o.Version:
		return o
	}
	switch {
	case r.Inc == o.Inc:
		r.Handed = r.Handed || o.Handed
	case r.Inc.Less(o.Inc):
		r.Inc, r.Handed = o.Inc, o.Handed
	}
	r.Rank, r.Order = max(r.Rank, o.Rank), max(r.Order, o.Order)
	return r
}

// Limits of a memory. A peer's memory that exceeds them is rejected.
const (
	// Only the newest of the members that are gone are kept, so that a memory fits into one
	// message. No member sends more.
	maxGoneBytes = wire.MaxPayload * 3 / 4
	maxGone      = 10_000

	FewGone         = 100     // up to which they are sent with every whole memory
	maxGoneRecorded = 100     // of these in a record, where they decide nothing
	MaxLive         = 10_000  // members that are not gone
	MaxName         = 256     // bytes of a name
	MaxOrdinal      = 1 << 48 // versions, numbers and orders
)

// Memory is the set of members that a replica remembers [M1]. It is immutable. merge only adds to
// it, so all replicas that hear the same reach the same memory.
type Memory struct {
	all    []Member // ascending by name
	digest uint64   // of all, 0 for none
	size   int      // number of members that quorums are counted over
	gone   int      // number of members that are gone
	Chain           // set if a record holds the membership [M9]
}

// Members returns the remembered members, ascending by name. The slice must not be changed.
func (m Memory) Members() []Member { return m.all }

// Digest returns a hash of the members; it is 0 if there are none.
func (m Memory) Digest() uint64 { return m.digest }

// Counted returns the number of members that quorums are counted over.
func (m Memory) Counted() int { return m.size }

// Remember returns the memory of members in the order of their names.
func Remember(all []Member) Memory {
	if len(all) == 0 {
		return Memory{}
	}
	m := Memory{all: all}
	m.size, m.gone = m.Count(In, Going), m.Count(Gone)
	h := sha256.New()
	var b []byte
	for _, r := range all {
		b = binary.AppendUvarint(b[:0], uint64(len(r.Name)))
		b = append(b, r.Name...)
		for _, n := range []uint64{r.Version, r.Inc.Number, uint64(r.Inc.Replica),
			uint64(r.Rank), r.Order} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		if r.Handed {
			b = append(b, 1)
		}
		h.Write(b)
	}
	m.digest = max(1, binary.LittleEndian.Uint64(h.Sum(nil)))
	return m
}

// GoneDigest returns the digest of the members that are gone, or 0 if they are so few that all can
// be sent each time.
func (m Memory) GoneDigest() uint64 {
	if _, past := split(m.all); len(past) >= FewGone {
		return Remember(past).digest
	}
	return 0
}

// Present returns the members that are not gone.
func (m Memory) Present() []Member {
	present, _ := split(m.all)
	return present
}

// split divides members into those that are not gone and those that are.
func split(all []Member) (present, past []Member) {
	for _, r := range all {
		if r.Rank == Gone {
			past = append(past, r)
		} else {
			present = append(present, r)
		}
	}
	return present, past
}

func (m Memory) find(name string) (int, bool) {
	return slices.BinarySearchFunc(m.all, name, func(r Member, n string) int {
		return strings.Compare(r.Name, n)
	})
}

// Of returns what is remembered of a member; its rank is absent if nothing is.
func (m Memory) Of(name string) Member {
	if i, ok := m.find(name); ok {
		return m.all[i]
	}
	return Member{Name: name}
}

// At returns the member whose present incarnation is the replica; its rank is absent if there is
// none.
func (m Memory) At(r causal.Replica) Member {
	for _, x := range m.all {
		if x.Inc.Replica == r {
			return x
		}
	}
	return Member{}
}

// Beyond returns what m holds and o does not.
func (m Memory) Beyond(o Memory) (all []Member) {
	rest := o.all
	for _, r := range m.all {
		for len(rest) > 0 && rest[0].Name < r.Name {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0] != r {
			all = append(all, r)
		}
	}
	return all
}

// With returns the memory extended by r.
func (m Memory) With(r Member) Memory { return m.Merge(Memory{all: []Member{r}}) }

// Merge returns the union of two memories.
func (m Memory) Merge(o Memory) Memory {
	if m.digest == o.digest && m.digest != 0 {
		return m
	}
	out := make([]Member, 0, max(len(m.all), len(o.all)))
	a, b := m.all, o.all
	above, below := true, true // the merged memory equals m; equals o
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].Name, b[0].Name); {
		case c < 0:
			out, a, below = append(out, a[0]), a[1:], false
		case c > 0:
			out, b, above = append(out, b[0]), b[1:], false
		default:
			r := a[0].merge(b[0])
			above, below = above && r == a[0], below && r == b[0]
			out, a, b = append(out, r), a[1:], b[1:]
		}
	}
	switch {
	case above && len(b) == 0 && m.digest != 0:
		return m
	case below && len(a) == 0 && o.digest != 0:
		return o
	}
	out = append(append(out, a...), b...)
	return Remember(prune(out, maxGone))
}

// prune drops the oldest members that are gone if there are more than most, or more than there is
// room for. Replicas with equal memories drop the same members.
func prune(all []Member, most int) []Member {
	kept, past := split(all)
	size := 0
	for _, r := range past {
		size += r.maxSize()
	}
	if len(past) <= most && size <= maxGoneBytes {
		return all
	}
	slices.SortFunc(past, later)
	size = 0
	for i, r := range past {
		if size += r.maxSize(); i >= most || size > maxGoneBytes {
			break
		}
		kept = append(kept, r)
	}
	slices.SortFunc(kept, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return kept
}

// maxSize returns the maximum number of bytes that r takes in a message.
func (r Member) maxSize() int { return len(r.Name) + 48 }

// later orders members that are gone, newest first.
func later(a, b Member) int {
	if a.Order != b.Order {
		if a.Order > b.Order {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

// maxReturning is how many of the members that have gone without having handed over what they had
// done, the newest, may come back with it: in another incarnation of the process, or from its disk.
const maxReturning = 32

// MayReturn reports whether a member that is gone may come back with events that no other member
// has.
func (m Memory) MayReturn(r Member) bool {
	newer := 0
	for _, x := range m.all {
		if x.Rank == Gone && !x.Handed && later(x, r) < 0 {
			newer++
		}
	}
	return !r.Handed && newer < maxReturning
}

// Count returns the number of members with one of the ranks.
func (m Memory) Count(ranks ...Rank) (n int) {
	for _, r := range m.all {
		if slices.Contains(ranks, r.Rank) {
			n++
		}
	}
	return n
}

// Leave returns the memory in which a member is gone. It is handed over if other members have all
// that it ever did.
func (m Memory) Leave(name string, handed bool) Memory {
	r := m.Of(name)
	r.Handed = handed
	for _, x := range m.all {
		r.Order = max(r.Order, x.Order)
	}
	r.Rank, r.Order = Gone, r.Order+1
	return m.With(r)
}

// MajorityOf returns the smallest number that is more than half of n.
func MajorityOf(n int) int { return n/2 + 1 }
