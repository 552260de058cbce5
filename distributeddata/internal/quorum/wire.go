package quorum

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// errMalformed says that no replica can have what was decoded.
var errMalformed = errors.New("quorum: malformed memory")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// Encode returns members as they are sent and stored.
func Encode(members []Member) []*pb.RememberedMember {
	out := make([]*pb.RememberedMember, len(members))
	for i, r := range members {
		out[i] = &pb.RememberedMember{
			Name: r.Name, Version: r.Version, Number: r.Inc.Number, Replica: uint64(r.Inc.Replica),
			Stage: uint32(r.Rank), Order: r.Order, Handed: r.Handed,
		}
	}
	return out
}

// Decode decodes a memory, and rejects one that no replica can have.
func Decode(in []*pb.RememberedMember) (Memory, error) {
	if len(in) > maxGone+MaxLive {
		return Memory{}, malformed("%d members, over the limit of %d", len(in), maxGone+MaxLive)
	}
	all := make([]Member, 0, len(in))
	live := 0
	for _, x := range in {
		r := Member{
			Name: x.Name, Version: x.Version, Inc: Incarnation{x.Number, causal.Replica(x.Replica)},
			Order: x.Order, Handed: x.Handed,
			Rank: Rank(min(x.Stage, uint32(Gone)+1)),
		}
		if err := r.check(); err != nil {
			return Memory{}, err
		}
		if n := len(all); n > 0 && all[n-1].Name >= r.Name {
			return Memory{}, malformed("order of members: %q after %q", r.Name, all[n-1].Name)
		}
		if r.Rank != Gone {
			live++
		}
		all = append(all, r)
	}
	if live > MaxLive {
		return Memory{}, malformed("%d members that are not gone, over the limit of %d", live,
			MaxLive)
	}
	return Remember(prune(all, maxGone)), nil
}

func (r Member) check() error {
	switch {
	case CheckName(r.Name) != nil:
		return malformed("member: %v", CheckName(r.Name))
	case r.Version > MaxOrdinal || r.Inc.Number > MaxOrdinal || r.Order > MaxOrdinal:
		return malformed("member %q: version %d, number %d, order %d, limit %d", r.Name, r.Version,
			r.Inc.Number, r.Order, uint64(MaxOrdinal))
	case r.Inc.Number == 0 || r.Inc.Replica == 0:
		return malformed("member %q: no incarnation", r.Name)
	case r.Rank < Joining || r.Rank > Gone:
		return malformed("member %q: stage %d", r.Name, r.Rank)
	case r.Rank != Gone && (r.Order != 0 || r.Handed):
		return malformed("member %q: order %d, handed over %t, but it is not gone", r.Name, r.Order,
			r.Handed)
	}
	return nil
}

// CheckName returns an error if the name of a member is not valid.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("name has %d bytes, over the limit of %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("name %q is not UTF-8", name)
	}
	return nil
}
