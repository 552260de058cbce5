package sharding

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/linear"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

func member(m membership.Member) core.Member {
	return core.Member{ID: m.ID, Incarnation: m.Incarnation, Address: m.Address}
}

// encode returns the wire form of a protocol message. Data is encoded separately: see
// wiremessage.go.
func encode(m core.Message) (wire.Manifest, proto.Message) {
	word := func(shard int, token, number uint64) *pb.ShardingWord {
		return &pb.ShardingWord{Shard: uint32(shard), Token: token, Number: number}
	}
	switch m := m.(type) {
	case core.Table:
		var r roll
		out := &pb.ShardingTable{Epoch: m.Epoch, Beat: m.Beat, N: m.N, Sum: m.Sum, Over: m.Over,
			Held: m.Held, Entries: r.entries(m.Entries)}
		out.Members = r.members
		return wire.ShardingTable, out
	case core.Report:
		var r roll
		out := &pb.ShardingReport{Epoch: m.Epoch, Beat: m.Beat, N: m.N, Sum: m.Sum,
			Leaving: m.Leaving, Failing: m.Failing, Held: m.Held, Memory: uint32(m.Memory),
			Entries: r.entries(m.Entries)}
		out.Members = r.members
		for _, t := range m.Active {
			out.Active = append(out.Active, &pb.ShardingTenure{Shard: uint32(t.Shard),
				Token: t.Token})
		}
		return wire.ShardingReport, out
	case core.AskFree:
		var r roll
		entry := r.entry(m.Entry)
		return wire.ShardingAskFree, &pb.ShardingAskFree{Members: r.members, Entry: entry}
	case core.Free:
		return wire.ShardingFree, &pb.ShardingFree{
			Shard: uint32(m.Shard), Epoch: m.Version.Epoch, N: m.Version.N,
			BlankVersion: m.Blank.Version, BlankToken: m.Blank.Token,
		}
	case core.Active:
		return wire.ShardingActive, word(m.Shard, m.Token, 0)
	case core.Where:
		return wire.ShardingWhere, word(m.Shard, 0, 0)
	case core.Pause:
		return wire.ShardingPause, word(m.Shard, m.Token, 0)
	case core.Flush:
		return wire.ShardingFlush, word(m.Shard, m.Token, m.Number)
	case core.Inactive:
		return wire.ShardingInactive, word(m.Shard, m.Token, 0)
	case core.NotHere:
		return wire.ShardingNotHere, word(m.Shard, m.Token, 0)
	case core.Sent:
		return wire.ShardingSent, word(0, 0, m.Bytes)
	case core.Taken:
		return wire.ShardingTaken, word(0, 0, m.Bytes)
	}
	panic(fmt.Sprintf("sharding: no encoding of %T", m)) // a bug of this package
}

// decode is the inverse of encode. It checks everything that the cores rely on.
func decode(manifest wire.Manifest, payload []byte) (core.Message, error) {
	switch manifest {
	case wire.ShardingTable:
		var m pb.ShardingTable
		if err := linear.Unmarshal(payload, &m); err != nil {
			return nil, err
		}
		entries, err := decodeEntries(m.Members, m.Entries)
		return core.Table{Epoch: m.Epoch, Beat: m.Beat, N: m.N, Sum: m.Sum, Entries: entries,
			Over: m.Over, Held: m.Held}, err
	case wire.ShardingReport:
		return decodeReport(payload)
	case wire.ShardingAskFree:
		var m pb.ShardingAskFree
		if err := linear.Unmarshal(payload, &m); err != nil {
			return nil, err
		}
		entries, err := decodeEntries(m.Members, []*pb.ShardingEntry{m.Entry})
		if err != nil {
			return nil, err
		}
		return core.AskFree{Entry: entries[0]}, nil
	case wire.ShardingFree:
		var m pb.ShardingFree
		if err := linear.Unmarshal(payload, &m); err != nil {
			return nil, err
		}
		f := core.Free{Shard: int(m.Shard), Version: core.Version{Epoch: m.Epoch, N: m.N},
			Blank: core.Blank{Version: m.BlankVersion, Token: m.BlankToken}}
		return f, fits(m.Shard, m.BlankToken)
	}
	return decodeWord(manifest, payload)
}

func decodeWord(manifest wire.Manifest, payload []byte) (core.Message, error) {
	var m pb.ShardingWord
	if err := linear.Unmarshal(payload, &m); err != nil {
		return nil, err
	}
	if err := fits(m.Shard, m.Token); err != nil {
		return nil, err
	}
	shard := int(m.Shard)
	switch manifest {
	case wire.ShardingActive:
		return core.Active{Shard: shard, Token: m.Token}, nil
	case wire.ShardingWhere:
		return core.Where{Shard: shard}, nil
	case wire.ShardingPause:
		return core.Pause{Shard: shard, Token: m.Token}, nil
	case wire.ShardingFlush:
		return core.Flush{Shard: shard, Token: m.Token, Number: m.Number}, nil
	case wire.ShardingInactive:
		return core.Inactive{Shard: shard, Token: m.Token}, nil
	case wire.ShardingNotHere:
		return core.NotHere{Shard: shard, Token: m.Token}, nil
	case wire.ShardingSent:
		return core.Sent{Bytes: m.Number}, nil
	case wire.ShardingTaken:
		return core.Taken{Bytes: m.Number}, nil
	}
	return nil, fmt.Errorf("unknown %v", manifest)
}

func decodeReport(payload []byte) (core.Message, error) {
	var m pb.ShardingReport
	if err := linear.Unmarshal(payload, &m); err != nil {
		return nil, err
	}
	if len(m.Active) > maxShards {
		return nil, fmt.Errorf("report of %d active shards, at most %d", len(m.Active), maxShards)
	}
	entries, err := decodeEntries(m.Members, m.Entries)
	r := core.Report{Epoch: m.Epoch, Beat: m.Beat, N: m.N, Sum: m.Sum, Entries: entries,
		Leaving: m.Leaving, Failing: m.Failing, Held: m.Held,
		Memory: core.Memory(min(m.Memory, uint32(core.MemoryFails)))}
	for _, t := range m.Active {
		if e := fits(t.GetShard(), t.GetToken()); e != nil {
			return nil, e
		}
		r.Active = append(r.Active, core.Tenure{Shard: int(t.GetShard()), Token: t.GetToken()})
	}
	return r, err
}

// fits rejects numbers that no member can send.
func fits(shard uint32, token uint64) error {
	switch {
	case shard >= maxShards:
		return fmt.Errorf("shard %d, at most %d", shard, maxShards-1)
	case token > math.MaxInt64:
		return fmt.Errorf("token %d, at most %d", token, int64(math.MaxInt64))
	}
	return nil
}

// roll collects the members that a message refers to.
type roll struct{ members []*pb.ShardingMember }

func (r *roll) index(m core.Member) uint32 {
	i := slices.IndexFunc(r.members, func(o *pb.ShardingMember) bool {
		return o.Id == m.ID && o.Incarnation == m.Incarnation && o.Address == m.Address
	})
	if i < 0 {
		i = len(r.members)
		r.members = append(r.members, &pb.ShardingMember{Id: m.ID, Incarnation: m.Incarnation,
			Address: m.Address})
	}
	return uint32(i)
}

func (r *roll) entry(e core.Entry) *pb.ShardingEntry {
	out := &pb.ShardingEntry{Shard: uint32(e.Shard), Epoch: e.Version.Epoch, N: e.Version.N,
		Home: r.index(e.Home)}
	for _, m := range e.Before {
		out.Before = append(out.Before, r.index(m))
	}
	return out
}

func (r *roll) entries(entries []core.Entry) (out []*pb.ShardingEntry) {
	for _, e := range entries {
		out = append(out, r.entry(e))
	}
	return out
}

func decodeEntries(members []*pb.ShardingMember,
	entries []*pb.ShardingEntry) ([]core.Entry, error) {
	if len(members) > maxMembers || len(entries) > maxShards {
		return nil, fmt.Errorf("%d members and %d entries, at most %d and %d", len(members),
			len(entries), maxMembers, maxShards)
	}
	who := make([]core.Member, 0, len(members))
	for _, m := range members {
		if len(m.GetId()) > wire.MaxName || len(m.GetAddress()) > wire.MaxName || m.GetId() == "" {
			return nil, fmt.Errorf("member id of %d bytes, address of %d, at most %d",
				len(m.GetId()), len(m.GetAddress()), wire.MaxName)
		}
		who = append(who, core.Member{ID: m.Id, Incarnation: m.Incarnation, Address: m.Address})
	}
	var out []core.Entry
	for _, e := range entries {
		if err := fits(e.GetShard(), e.GetEpoch()); err != nil {
			return nil, err
		}
		a := core.Assignment{Version: core.Version{Epoch: e.GetEpoch(), N: e.GetN()}}
		for _, i := range append([]uint32{e.GetHome()}, e.GetBefore()...) {
			if int64(i) >= int64(len(who)) {
				return nil, fmt.Errorf("entry of shard %d names member %d of %d", e.GetShard(), i,
					len(who))
			}
			a.Before = append(a.Before, who[i])
		}
		a.Home, a.Before = a.Before[0], slices.Clip(a.Before[1:])
		if len(a.Before) == 0 {
			a.Before = nil
		}
		out = append(out, core.Entry{Shard: int(e.GetShard()), Assignment: a})
	}
	return out, nil
}
