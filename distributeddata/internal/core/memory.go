package core

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// rank is the stage of a member in the count of quorums. Under one version it only rises [M1].
type rank uint8

const (
	absent  rank = iota
	joining      // known, but not counted
	in           // counted; votes once it is ready
	going        // counted; no longer votes
	gone         // no longer counted
)

// incarnation names one process of a member. Of two, the one with the larger number is the later.
type incarnation struct {
	number  uint64
	replica causal.Replica
}

func (i incarnation) less(j incarnation) bool {
	return i.number < j.number || i.number == j.number && i.replica < j.replica
}

// remembered is what a memory holds of one member.
type remembered struct {
	name    string
	version uint64 // rises each time the member comes back after it was gone
	inc     incarnation
	rank    rank
	order   uint64 // of a member that is gone: larger than that of members gone before
	handed  bool   // of a member that is gone: others have all that this incarnation ever did
}

// merge merges what two memories hold of one member: the larger version wins; under one version
// each part is the larger of both.
func (r remembered) merge(o remembered) remembered {
	switch {
	case r.version > o.version:
		return r
	case r.version < o.version:
		return o
	}
	switch {
	case r.inc == o.inc:
		r.handed = r.handed || o.handed
	case r.inc.less(o.inc):
		r.inc, r.handed = o.inc, o.handed
	}
	r.rank, r.order = max(r.rank, o.rank), max(r.order, o.order)
	return r
}

// Limits of a memory. A peer's memory that exceeds them is rejected.
const (
	// Only the newest of the members that are gone are kept, so that a memory fits into one
	// message. No member sends more.
	maxGoneBytes = wire.MaxPayload * 3 / 4
	maxGone      = 10_000

	fewGone         = 100     // up to which they are sent with every whole memory
	maxGoneRecorded = 100     // of these in a record, where they decide nothing
	maxLive         = 10_000  // members that are not gone
	MaxMember       = 256     // bytes of a name
	maxOrdinal      = 1 << 48 // versions, numbers and orders
)

// memory is the set of members that a replica remembers [M1]. It is immutable. merge only adds to
// it, so all replicas that hear the same reach the same memory.
type memory struct {
	all    []remembered // ascending by name
	digest uint64       // of all, 0 for none
	size   int          // number of members that quorums are counted over
	chain               // set if a record holds the membership [M9]
}

func remember(all []remembered) memory {
	if len(all) == 0 {
		return memory{}
	}
	m := memory{all: all}
	m.size = m.count(in, going)
	h := sha256.New()
	var b []byte
	for _, r := range all {
		b = binary.AppendUvarint(b[:0], uint64(len(r.name)))
		b = append(b, r.name...)
		for _, n := range []uint64{r.version, r.inc.number, uint64(r.inc.replica),
			uint64(r.rank), r.order} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		if r.handed {
			b = append(b, 1)
		}
		h.Write(b)
	}
	m.digest = max(1, binary.LittleEndian.Uint64(h.Sum(nil)))
	return m
}

// goneDigest returns the digest of the members that are gone, or 0 if they are so few that all can
// be sent each time.
func (m memory) goneDigest() uint64 {
	if _, past := split(m.all); len(past) >= fewGone {
		return remember(past).digest
	}
	return 0
}

// present returns the members that are not gone.
func (m memory) present() memory {
	present, _ := split(m.all)
	return memory{all: present}
}

// split divides members into those that are not gone and those that are.
func split(all []remembered) (present, past []remembered) {
	for _, r := range all {
		if r.rank == gone {
			past = append(past, r)
		} else {
			present = append(present, r)
		}
	}
	return present, past
}

func (m memory) find(name string) (int, bool) {
	return slices.BinarySearchFunc(m.all, name, func(r remembered, n string) int {
		return strings.Compare(r.name, n)
	})
}

// of returns what is remembered of a member; its rank is absent if nothing is.
func (m memory) of(name string) remembered {
	if i, ok := m.find(name); ok {
		return m.all[i]
	}
	return remembered{name: name}
}

// at returns the member whose present incarnation is the replica; its rank is absent if there is
// none.
func (m memory) at(r causal.Replica) remembered {
	for _, x := range m.all {
		if x.inc.replica == r {
			return x
		}
	}
	return remembered{}
}

// beyond returns what m holds and o does not.
func (m memory) beyond(o memory) (all []remembered) {
	for _, r := range m.all {
		if o.of(r.name) != r {
			all = append(all, r)
		}
	}
	return all
}

// with returns the memory extended by r.
func (m memory) with(r remembered) memory { return m.merge(memory{all: []remembered{r}}) }

// merge returns the union of two memories.
func (m memory) merge(o memory) memory {
	if m.digest == o.digest && m.digest != 0 {
		return m
	}
	out := make([]remembered, 0, max(len(m.all), len(o.all)))
	a, b := m.all, o.all
	above, below := true, true // the merged memory equals m; equals o
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].name, b[0].name); {
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
	return remember(prune(out, maxGone))
}

// prune drops the oldest members that are gone if there are more than most, or more than there is
// room for. Replicas with equal memories drop the same members.
func prune(all []remembered, most int) []remembered {
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
	slices.SortFunc(kept, func(a, b remembered) int { return strings.Compare(a.name, b.name) })
	return kept
}

// maxSize returns the maximum number of bytes that r takes in a message.
func (r remembered) maxSize() int { return len(r.name) + 48 }

// later orders members that are gone, newest first.
func later(a, b remembered) int {
	if a.order != b.order {
		if a.order > b.order {
			return -1
		}
		return 1
	}
	return strings.Compare(a.name, b.name)
}

// maxReturning is how many of the members that have gone without having handed over what they had
// done, the newest, may come back with it: in another life of the process, or from its disk.
const maxReturning = 32

// mayReturn reports whether a member that is gone may come back with events that no other member
// has.
func (m memory) mayReturn(r remembered) bool {
	newer := 0
	for _, x := range m.all {
		if x.rank == gone && !x.handed && later(x, r) < 0 {
			newer++
		}
	}
	return !r.handed && newer < maxReturning
}

// count returns the number of members with one of the ranks.
func (m memory) count(ranks ...rank) (n int) {
	for _, r := range m.all {
		if slices.Contains(ranks, r.rank) {
			n++
		}
	}
	return n
}

// leave returns the memory in which a member is gone. It is handed over if other members have all
// that it ever did.
func (m memory) leave(name string, handed bool) memory {
	r := m.of(name)
	r.handed = handed
	for _, x := range m.all {
		r.order = max(r.order, x.order)
	}
	r.rank, r.order = gone, r.order+1
	return m.with(r)
}

// majorityOf returns the smallest number that is more than half of n.
func majorityOf(n int) int { return n/2 + 1 }
