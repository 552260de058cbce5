package membership

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// peer is a listed member other than this one.
type peer struct {
	listed
	incarnation uint64    // 0 until its first hello
	stamp       uint64    // 0 while not known
	sequence    uint64    // of its last hello in this incarnation
	since       time.Time // since when it has been listed, or known in this incarnation
	heard       time.Time // last hello in this incarnation; zero: none
	next        time.Time // when to send it a hello
	listedUs    bool      // it has reported that it lists us, in this incarnation
	left        bool      // it has reported that it leaves gracefully
	speaks      bool      // it supports permits
	poll        bool      // ask it to answer the next hello
	agreed      time.Time // last hello in which it reported that it lists us
	pledge      string    // the first that it gave
	against     int       // consecutive hellos that report that it does not list us
	againstAt   time.Time
}

// retired is an incarnation that was replaced by another one with the same id.
type retired struct {
	id          string
	incarnation uint64
}

// roster holds the members that the provider lists, without ours.
type roster struct {
	most      int // of former
	peers     map[string]*peer
	order     []*peer             // the values of peers, by id
	addresses map[string]struct{} // of peers
	former    []retired           // oldest first
	nameFrom  int                 // index of the next member to name
}

// replace replaces the members.
func (x *roster) replace(peers map[string]*peer) {
	x.peers = peers
	x.order = slices.SortedFunc(maps.Values(peers), func(a, b *peer) int {
		return strings.Compare(a.ID, b.ID)
	})
}

func (x *roster) lists(address string) bool {
	_, ok := x.addresses[address]
	return ok
}

// retire records that p has another incarnation now.
func (x *roster) retire(p *peer) {
	x.former = append(x.former, retired{p.ID, p.incarnation})
	if len(x.former) > x.most {
		x.former = slices.Delete(x.former, 0, 1)
	}
}

// names returns addresses of members, at most maxNames; in larger clusters they rotate.
func (x *roster) names() (out []string) {
	n := len(x.order)
	for i := range min(n, maxNames) {
		out = append(out, x.order[(x.nameFrom+i)%n].Address)
	}
	if n > maxNames {
		x.nameFrom = (x.nameFrom + maxNames) % n
	}
	return out
}

// pledge returns the pledge of the member at an address, or "".
func (x *roster) pledge(address string) string {
	for _, p := range x.order {
		if p.Address == address && p.pledge != "" {
			return p.pledge
		}
	}
	return ""
}
