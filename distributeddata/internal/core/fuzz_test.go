package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// FuzzReceive sends arbitrary payloads of every manifest to a replica that has state, a request in
// flight and pending operations. Nothing may panic, the vector must stay that of the applied
// events, and an undecodable payload must change nothing. A peer that claims to have more events of
// the replica than it has itself makes it continue under a new id, without losing its update.
func FuzzReceive(f *testing.F) {
	seed := func(m wire.Manifest, payload []byte) { f.Add(uint32(m), payload) }
	l := newLab(&testing.T{}, "a", "b")
	l.update("b", Level{}, add("s", "x"), count("c", "k", 3))
	l.update("b", Level{}, drop("c", "k"), op{kind: opDelete, key: "s"})
	for _, m := range l.box {
		seed(m.send.Manifest, m.send.Payload)
	}
	b := l.cores["b"]
	seed(wire.ReplicatorPush, encodePush(everything(b), b.Replica(), b.Keys()))
	seed(wire.ReplicatorPart, encodeState(b.history.State()))
	seed(wire.ReplicatorAck, encodeAck(48, false, 0, 0)) // more events than there are
	old := bases.Of(departed(50))
	seed(wire.ReplicatorBaseRequest,
		encode(&pb.BaseRequest{Base: old.Name(), Known: [][]byte{old.Name()}}))
	_, ids, numbers := bases.Base{}.List(old.Vector())
	part := &pb.BasePart{Base: old.Name(), Numbers: numbers, Last: true}
	for _, id := range ids {
		part.Replicas = append(part.Replicas, uint64(id))
	}
	seed(wire.ReplicatorBase, encode(part))
	seed(wire.ReplicatorProbe, encode(&pb.Probe{Id: 1, Want: &pb.VersionVector{Base: old.Name()}}))
	f.Fuzz(func(t *testing.T, manifest uint32, payload []byte) {
		l := newLab(t, "a", "b")
		a := l.cores["a"]
		a.bases.await(&a.step, a.peers.of("b"), Receive{Member: "b"}, causal.Digest(old.Name()))
		l.update("a", Level{Kind: All}, add("s", "y"), count("c", "k", 1))
		a.in.Begin(a.now, 1, "b", refilling{have: a.Seen(), copied: a.history.State()})
		l.step("a", Read{ID: 99, Level: majority, Deadline: l.now.Add(time.Second)})
		me, seen, malformed := a.Replica(), a.Seen(), a.Stats().Malformed
		before := stateBytes(a)
		l.step("a", Receive{Member: "b", From: l.cores["b"].Replica(), To: a.Replica(),
			Manifest: wire.Manifest(manifest), Payload: payload})
		if a.Replica() != me {
			a.bases.Set = a.bases.Next()
			l.pass(60 * time.Second) // it waits in vain for what the peer claims to have
			l.settled()
			for _, n := range l.order {
				got := l.text(n)
				require.Contains(t, got, "s/y=1\n", n)
			}
			return
		}
		require.True(t, seen.Leq(a.Seen()))
		if a.Stats().Malformed > malformed {
			require.Equal(t, before, stateBytes(a))
		}
		l.wake(time.Minute, "a")
	})
}

// FuzzVector decodes arbitrary bytes as a vector relative to a base. An accepted vector must encode
// in one way with that base, or shorter without.
func FuzzVector(f *testing.F) {
	b := bases.Of(departed(40))
	for _, v := range []causal.Vector{{}, departed(3), departed(41), b.Vector().Set(5, 1),
		b.Vector().Set(b.Vector().At(7).Replica, 0), b.Vector()} {
		f.Add(appendVector(nil, 1, v, b)[2:])
	}
	known := func(name []byte) (causal.Vector, bool) {
		return b.Vector(), string(name) == string(b.Name())
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := parseVector(src, known)
		if err != nil {
			return
		}
		name, ids, numbers := b.List(v)
		again, err := bases.Vector(name, ids, numbers, known)
		require.NoError(t, err)
		require.True(t, v.Equal(again))
		require.LessOrEqual(t, len(ids), len(src)/9+1)
	})
}

// FuzzDecode decodes arbitrary bytes as the payloads that are decoded by hand. An accepted payload
// must encode to something that decodes to the same.
func FuzzDecode(f *testing.F) {
	l := newLab(&testing.T{}, "a", "b")
	l.update("b", Level{}, add("s", "x"), count("c", "k", 3))
	l.update("b", Level{}, drop("c", "k"), op{kind: opDelete, key: "s"})
	b := l.cores["b"]
	f.Add(encodePush(everything(b), b.Replica(), b.Keys()))
	f.Add(encodeState(b.history.State()))
	f.Fuzz(func(t *testing.T, src []byte) {
		if d, err := decodePush(src, 7, unheard); err == nil {
			out := pushed(d)
			again, err := decodePush(out, 7, unheard)
			require.NoError(t, err)
			require.Equal(t, out, pushed(again))
		}
		var s stage
		if s.feed(src) != nil || s.end() != nil || !s.head.state {
			return
		}
		if st, err := s.state(history.State{}); err == nil {
			var again stage
			require.NoError(t, again.feed(encodeState(st)))
			st2, err := again.state(history.State{})
			require.NoError(t, err)
			require.Equal(t, encodeState(st), encodeState(st2))
		}
	})
}

// everything returns the whole log of a replica as a delta.
func everything(c *Core) *history.Delta {
	d, _ := c.history.Since(causal.Vector{})
	return d
}

// pushed encodes a decoded delta, with the state that its own adds make.
func pushed(d *history.Delta) []byte {
	var keys history.Keys
	for _, e := range d.Events {
		for i, k := range e.Keys {
			h, _ := keys.Get(k.Key)
			for j, a := range k.Adds {
				if e.Gone[i] == nil || !e.Gone[i][j] {
					h.Store = h.Insert(a.Path, a.Leaf)
				}
			}
			keys = keys.With(func(yield func(string, history.Held) bool) { yield(k.Key, h) })
		}
	}
	return encodePush(d, 7, keys)
}

// unheard knows no base.
func unheard([]byte) (causal.Vector, bool) { return causal.Vector{}, false }
