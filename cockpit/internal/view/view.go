// Package view converts the status of components to the JSON of a cockpit. It also finds problems,
// and differences between two overviews. Its functions are pure: they do no I/O and read no clock.
package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// Bounds of lists in an overview.
const (
	maxLag    = 64
	maxLeases = 12
	maxMap    = 1024
	maxText   = 300
)

// Cut shortens s to at most the given number of bytes, at a rune boundary, and marks the cut with
// an ellipsis.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}

// list returns s, or an empty slice if s is nil.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// Replicator describes a replica. Function address returns the address of a member, given its
// address or its id: replicas refer to members that have left by id.
func Replicator(name string, address func(string) string, s distributeddata.Status) api.Replicator {
	r := api.Replicator{
		Name: name, Replica: fmt.Sprint(s.Replica), Address: s.Address, Ready: s.Ready,
		NotReady: s.NotReady,
		Members:  s.Members, Counted: s.Counted, Missing: list(s.Missing), Trouble: s.Trouble,
		OtherDurable: list(s.OtherDurable),
		Keys:         s.Keys, Vector: Cut(s.Seen, maxText), LogBytes: s.LogBytes,
		Updates: s.Updates,
		Applied: s.Applied,
		Repairs: s.Repairs, Bulks: s.Bulks, Expired: s.Expired, Filled: s.Filled, ToFill: s.ToFill,
		Diverged:  s.Diverged,
		Corrupted: s.Corrupted, Mended: s.Mended, Malformed: s.Malformed, Strangers: s.Strangers,
		Waiting: s.Waiting,
		Faults:  s.Faults, Panics: s.Panics, NearLimits: list(s.NearLimits), Lag: []api.Lag{},
		Sent: []api.Traffic{},
	}
	for member, n := range s.Lag {
		r.Lag = append(r.Lag, api.Lag{Member: address(member), Updates: n})
	}
	slices.SortFunc(r.Lag, func(a, b api.Lag) int {
		return cmp.Or(cmp.Compare(b.Updates, a.Updates), cmp.Compare(a.Member, b.Member))
	})
	r.Lag = r.Lag[:min(len(r.Lag), maxLag)]
	for _, kind := range slices.Sorted(maps.Keys(s.Sent)) {
		t := s.Sent[kind]
		r.Sent = append(r.Sent, api.Traffic{Kind: kind, Messages: t.Messages, Bytes: t.Bytes})
		r.SentMessages += t.Messages
		r.SentBytes += t.Bytes
	}
	if d := s.Durable; d != nil {
		r.Durable = &api.Durable{
			Ready: d.Ready, Keys: d.Keys, Disk: d.Disk, Error: Cut(d.DiskError, maxText),
			Unsaved: d.Unsaved, Batches: d.Batches, Holes: d.Holes,
		}
	}
	return r
}

// Session describes a session with the given status and leases.
func Session(name string, s coordination.Status, failing bool, leases []api.Lease) api.Session {
	out := api.Session{
		Name: name, Owner: s.Owner, Held: s.Held, NearExpiry: s.NearExpiry, Waiting: s.Waiting,
		Known:   len(leases),
		Granted: s.Granted, Taken: s.Taken, Unknown: s.Unknown, Released: s.Released,
		Failing: failing, Panics: s.Panics,
		Lost: map[string]uint64{}, Leases: first(leases),
	}
	for why, n := range s.Lost {
		out.Lost[why.String()] += n
	}
	for _, c := range s.Calls {
		out.Failures += c.Failed
	}
	return out
}

// States of a lease.
const (
	Held       = "held"
	NearExpiry = "near expiry"
	Waiting    = "waiting"
	Known      = "known"
)

// urgency is the sort order of lease states in an overview.
var urgency = map[string]int{NearExpiry: 0, Waiting: 1, Held: 2, Known: 3}

// Lease describes a lease at time now. It rounds the expiry, so that the expiry stays equal between
// calls.
func Lease(session string, s coordination.LeaseStatus, now time.Time) api.Lease {
	l := api.Lease{Session: session, Name: s.Name, State: Known, Owner: s.Owner,
		Token: uint64(s.Token), Forever: s.Forever, Waiting: s.Waiting}
	switch {
	case s.NearExpiry:
		l.State = NearExpiry
	case s.Held:
		l.State = Held
	case s.Waiting > 0:
		l.State = Waiting
	}
	if s.Held && !s.Forever {
		l.Expires = new(now.Add(s.Remaining).Round(100 * time.Millisecond).UTC())
	}
	if s.Failure != nil {
		l.Failure = Cut(s.Failure.Error(), maxText)
	}
	return l
}

// first returns the most urgent leases, at most maxLeases.
func first(leases []api.Lease) []api.Lease {
	out := slices.Clone(leases)
	slices.SortStableFunc(out, func(a, b api.Lease) int {
		return cmp.Or(cmp.Compare(urgency[a.State], urgency[b.State]), sooner(a.Expires, b.Expires),
			cmp.Compare(a.Name, b.Name))
	})
	out = slices.Clip(out[:min(len(out), maxLeases)])
	if out == nil {
		return []api.Lease{}
	}
	return out
}

func sooner(a, b *time.Time) int {
	switch {
	case a == nil || b == nil:
		return 0
	default:
		return a.Compare(*b)
	}
}

// Singleton describes the place of an instance, for the member with address self.
func Singleton(name, self string, p singleton.Place, known bool, s singleton.Stats) api.Singleton {
	out := api.Singleton{Name: name, State: "unknown", Host: p.Address, Token: uint64(p.Token),
		Refused: s.Refused, PassedOn: s.PassedOn, StateLost: s.StateLost, Panics: s.Panics,
		TakeOverMS: p.TakeOver.Milliseconds()}
	if known && p.Address == self {
		out.State = "here"
	} else if known {
		out.State = "elsewhere"
	}
	if !p.Since.IsZero() {
		out.Since = new(p.Since.UTC())
	}
	return out
}

// HasRole reports whether a member has a role. All members have the empty role.
func HasRole(m api.Member, role string) bool { return role == "" || slices.Contains(m.Roles, role) }

// Hosts returns the addresses of the members that have a role.
func Hosts(c api.Cluster, role string) []string {
	out := []string{}
	for _, m := range c.Members {
		if HasRole(m, role) {
			out = append(out, m.Address)
		}
	}
	slices.Sort(out)
	return out
}

// Shards describes the shards of a type, for a member with the given view of the cluster. Function
// address returns the address of a member, given its id.
func Shards(s sharding.Status, st sharding.Stats, c api.Cluster,
	address func(id string) string) api.Shards {
	out := api.Shards{
		Type: s.Type, Shards: len(s.Shards), States: map[string]int{},
		Homes: []api.Home{}, Map: []int{},
		Entities: s.Entities(), Refused: st.Refused, Failed: st.Failed, Panics: st.Panics,
		Movable: s.Movable, StoreFails: s.StoreFails, Hosts: Hosts(c, s.Role),
	}
	for id, n := range s.Homes() {
		if id != "" {
			at := address(id)
			out.Homes = append(out.Homes, api.Home{ID: id, Address: at, Shards: n,
				Here: at == c.Self})
		}
	}
	slices.SortFunc(out.Homes, func(a, b api.Home) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.ID, b.ID))
	})
	index := map[string]int{"": -1}
	for i, h := range out.Homes {
		index[h.ID] = i
	}
	for i, sh := range s.Shards {
		out.States[sh.State.String()]++
		out.Waiting += sh.Waiting
		if sh.Requested != "" {
			out.Requested++
		}
		if i < maxMap {
			out.Map = append(out.Map, index[sh.Home])
		}
	}
	return out
}

// Shard describes one shard.
func Shard(s sharding.ShardStatus, address func(id string) string) api.Shard {
	out := api.Shard{
		Shard: s.Shard, State: s.State.String(), Token: uint64(s.Token), Entities: s.Entities,
		Waiting:    s.Waiting,
		TakeOverMS: s.TakeOver.Milliseconds(), Requested: Cut(address(s.Requested), maxText),
	}
	if s.Home != "" {
		out.Home = address(s.Home)
	}
	if !s.Since.IsZero() {
		out.Since = new(s.Since.UTC())
	}
	return out
}
