package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// confirmBeat is confirm for a heartbeat. A heartbeat meant for another replica of this member says
// nothing about this one's events: its sender may have them from before a snapshot.
func (c cluster) confirmBeat(p *peer, n, x uint64, counts bool) bool {
	if x == 0 || x>>32 != uint64(c.Replica())&(1<<32-1) {
		return true
	}
	return c.confirm(p, n, history.EventHash(x), counts)
}

// confirm records that p covers own events up to n, the last of them with the hash x. counts says
// that p speaks as a member that counts. It returns false if that event is not this replica's: then
// both come from one snapshot of a machine [R4].
func (c cluster) confirm(p *peer, n uint64, x history.EventHash, counts bool) bool {
	if !c.history.Owns(n, x) {
		c.restored = true
		return false
	}
	if counts {
		p.vouches, p.counted = true, max(p.counted, n)
		c.waits.Stir()
	}
	if n > p.acked {
		c.waits.Stir()
		p.acknowledged(n)
		c.history.Copied(n)
	}
	return true
}

// hashesOut returns the hashes of the events that this replica has applied of itself and of the
// members that it sees or remembers. The receiver may see more members than this replica does;
// without a hash it would have to trust a vector alone that this replica has what the origin did.
func hashesOut(h *history.History, ps peers, r *members) origins {
	out := origins{}
	tell := func(of causal.Replica) {
		if x := h.HashOf(of); x != 0 {
			out[of] = x
		}
	}
	for _, p := range ps {
		tell(p.replica)
	}
	for _, m := range r.Members() {
		if m.Rank != quorum.Gone {
			tell(m.Inc.Replica)
		}
	}
	tell(h.Replica())
	return out
}

// origins are the event hashes that an answer carries, by replica: of the events in its head.
type origins = map[causal.Replica]history.EventHash

// ranked returns the hashes together with the ranks of their origins in a vector.
func ranked(o origins, v causal.Vector) (at []uint64, hashes []history.EventHash) {
	for _, r := range slices.Sorted(maps.Keys(o)) {
		if i, n := v.Rank(r); n > 0 {
			at, hashes = append(at, uint64(i)), append(hashes, o[r])
		}
	}
	return at, hashes
}

// originsOf decodes hashes with the ranks of their origins in a vector.
func originsOf(v causal.Vector, at []uint64, hashes []history.EventHash) (origins, error) {
	if len(at) != len(hashes) {
		return nil, malformed("%d hashes of %d replicas", len(hashes), len(at))
	}
	out := origins{}
	for i, x := range at {
		if x >= uint64(v.Len()) {
			return nil, malformed("a hash of replica %d of %d", x, v.Len())
		}
		out[v.At(int(x)).Replica] = hashes[i]
	}
	return out, nil
}
