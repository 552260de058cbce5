package sharding

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// Any input from a peer yields an error, or a message whose numbers are within bounds and which
// encodes to what was read.
func FuzzDecode(f *testing.F) {
	a, b := core.Member{ID: "a", Incarnation: 1, Address: "h:1"},
		core.Member{ID: "b", Incarnation: 2, Address: "h:2"}
	entry := core.Entry{Shard: 3, Assignment: core.Assignment{Version: core.Version{Epoch: 4, N: 5},
		Home: a, Before: []core.Member{b}}}
	for _, m := range []core.Message{
		core.Table{Epoch: 4, Beat: 9, N: 5, Sum: 6, Entries: []core.Entry{entry}, Over: true},
		core.Report{Epoch: 4, Beat: 9, N: 5, Sum: 6, Entries: []core.Entry{entry},
			Active: []core.Tenure{{Shard: 3, Token: 7}}, Leaving: true, Memory: core.MemoryFails},
		core.Farewell(),
		core.AskFree{Entry: entry}, core.Free{Shard: 3, Version: entry.Version, Blank: core.Blank{
			Version: "v", Token: 7}},
		core.Active{Shard: 3, Token: 7}, core.Where{Shard: 3}, core.Pause{Shard: 3, Token: 7},
		core.Flush{Shard: 3, Token: 7, Number: 8},
		core.Inactive{Shard: 3, Token: 7}, core.NotHere{Shard: 3, Token: 7}, core.Sent{Bytes: 9},
		core.Taken{Bytes: 9},
	} {
		manifest, out := encode(m)
		payload, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint32(manifest), payload)
	}
	f.Add(uint32(wire.ShardingReport), []byte{0x32, 0x05, 0x08, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, manifest uint32, payload []byte) {
		m, err := decode(wire.Manifest(manifest), payload)
		if err != nil {
			return
		}
		fit := func(shard int, token uint64) {
			if shard < 0 || shard >= maxShards || token > math.MaxInt64 {
				t.Fatalf("%T: shard %d, token %d", m, shard, token)
			}
		}
		switch m := m.(type) {
		case core.Table:
			for _, e := range m.Entries {
				fit(e.Shard, e.Version.Epoch)
			}
		case core.Report:
			for _, e := range m.Entries {
				fit(e.Shard, e.Version.Epoch)
			}
			for _, x := range m.Active {
				fit(x.Shard, x.Token)
			}
		case core.AskFree:
			fit(m.Shard, m.Version.Epoch)
		case core.Free:
			fit(m.Shard, m.Blank.Token)
		}
		again, out := encode(m)
		b, err := proto.Marshal(out)
		if err != nil {
			return // text that is not UTF-8 cannot be read either
		}
		if _, err := decode(again, b); err != nil {
			t.Fatalf("%T is not read again: %v", m, err)
		}
	})
}

// A wireMessage is a message to an entity, or an error with its number.
func FuzzUnpack(f *testing.F) {
	good, err := proto.Marshal(&pb.ShardingParcel{Shard: 3, Token: 7, Number: 1, Entity: "x",
		Type: "google.protobuf.StringValue", SenderId: "s"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := decodeWireMessage(payload, &names{})
		if err != nil {
			return
		}
		if n := len(m.appendTo(nil)); n != m.size() {
			t.Fatalf("%d bytes instead of %d", n, m.size())
		}
		var in pb.ShardingParcel
		if proto.Unmarshal(payload, &in) == nil &&
			!proto.Equal(&in, generatedOf(m, in.ProtoReflect().GetUnknown())) {
			t.Fatalf("%+v instead of %v", m, &in)
		}
		d, _, err := new(types).unpack(&m)
		switch {
		case err == nil && (d.Body.Value == nil || checkID(d.Body.ID) != nil ||
			d.Shard >= maxShards):
			t.Fatalf("%+v is taken", d)
		case err != nil && d.Body.ID != "":
			t.Fatalf("%+v in spite of %v", d, err)
		}
	})
}

// Any entry of the replicated table yields its original value or an error.
func FuzzDecodeEntry(f *testing.F) {
	text, err := encodeEntry(core.Entry{Shard: 3, Assignment: core.Assignment{
		Version: core.Version{Epoch: 4, N: 5}, Home: core.Member{ID: "a"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := decodeEntry(text)
		if err == nil && (e.Shard >= maxShards || e.Home.ID == "") {
			t.Fatalf("%+v is taken", e)
		}
	})
}

// Any statistics of a peer are within bounds, or yield an error.
func FuzzDecodeStats(f *testing.F) {
	good, err := proto.Marshal(
		encodeStats(7, MemberStats{Shards: 3, HandingOff: 1, Entities: 5, Waiting: 9}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0x10, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, payload []byte) {
		number, m, err := decodeStats(payload)
		if err != nil {
			return
		}
		if m.Shards < 0 || m.Shards > maxShards || m.HandingOff < 0 || m.Entities < 0 ||
			m.Waiting < 0 {
			t.Fatalf("%+v is taken", m)
		}
		b, err := proto.Marshal(encodeStats(number, m))
		if err != nil {
			t.Fatal(err)
		}
		if n, again, err := decodeStats(b); err != nil || n != number || again != m {
			t.Fatalf("%+v is read again as %+v: %v", m, again, err)
		}
	})
}
