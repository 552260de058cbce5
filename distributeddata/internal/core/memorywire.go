package core

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// out returns the memory as it is sent and stored.
func (m memory) out() []*pb.RememberedMember {
	out := make([]*pb.RememberedMember, len(m.all))
	for i, r := range m.all {
		out[i] = &pb.RememberedMember{
			Name: r.name, Version: r.version, Number: r.inc.number, Replica: uint64(r.inc.replica),
			Stage: uint32(r.rank), Order: r.order, Handed: r.handed,
		}
	}
	return out
}

// memoryIn decodes a memory, and rejects one that no replica can have.
func memoryIn(in []*pb.RememberedMember) (memory, error) {
	if len(in) > maxGone+maxLive {
		return memory{}, malformed("%d members, over the limit of %d", len(in), maxGone+maxLive)
	}
	all := make([]remembered, 0, len(in))
	live := 0
	for _, x := range in {
		r := remembered{
			name: x.Name, version: x.Version, inc: incarnation{x.Number, causal.Replica(x.Replica)},
			order: x.Order, handed: x.Handed,
			rank: rank(min(x.Stage, uint32(gone)+1)),
		}
		if err := r.check(); err != nil {
			return memory{}, err
		}
		if n := len(all); n > 0 && all[n-1].name >= r.name {
			return memory{}, malformed("order of members: %q after %q", r.name, all[n-1].name)
		}
		if r.rank != gone {
			live++
		}
		all = append(all, r)
	}
	if live > maxLive {
		return memory{}, malformed("%d members that are not gone, over the limit of %d", live,
			maxLive)
	}
	return remember(prune(all, maxGone)), nil
}

func (r remembered) check() error {
	switch {
	case CheckMember(r.name) != nil:
		return malformed("member: %v", CheckMember(r.name))
	case r.version > maxOrdinal || r.inc.number > maxOrdinal || r.order > maxOrdinal:
		return malformed("member %q: version %d, number %d, order %d, limit %d", r.name, r.version,
			r.inc.number, r.order, uint64(maxOrdinal))
	case r.inc.number == 0 || r.inc.replica == 0:
		return malformed("member %q: no incarnation", r.name)
	case r.rank < joining || r.rank > gone:
		return malformed("member %q: stage %d", r.name, r.rank)
	case r.rank != gone && (r.order != 0 || r.handed):
		return malformed("member %q: order %d, handed over %t, but it is not gone", r.name, r.order,
			r.handed)
	}
	return nil
}

// encode returns the memory as it is stored; decodeMemory decodes it.
func (m memory) encode() []byte { return encode(&pb.Members{Members: m.out()}) }

func decodeMemory(b []byte) (memory, error) {
	var m pb.Members
	if err := decode(b, &m); err != nil {
		return memory{}, err
	}
	return memoryIn(m.Members)
}

// CheckMember returns an error if the name of a member is not valid.
func CheckMember(name string) error {
	switch {
	case name == "":
		return errors.New("name is empty")
	case len(name) > MaxMember:
		return fmt.Errorf("name has %d bytes, over the limit of %d", len(name), MaxMember)
	case !utf8.ValidString(name):
		return fmt.Errorf("name %q is not UTF-8", name)
	}
	return nil
}
