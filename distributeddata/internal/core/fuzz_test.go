package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// FuzzReceive hands arbitrary payloads of every manifest to a replica that has state, a request under
// way and operations that wait: nothing panics, the vector stays what the replica has applied, and a
// payload that cannot be decoded changes nothing.
func FuzzReceive(f *testing.F) {
	seed := func(m wire.Manifest, payload []byte) { f.Add(uint32(m), payload) }
	l := newLab(&testing.T{}, "a", "b")
	l.update("b", Level{}, add("s", "x"), count("c", "k", 3))
	l.update("b", Level{}, drop("c", "k"), op{kind: opDelete, key: "s"})
	for _, m := range l.box {
		seed(m.send.Manifest, m.send.Payload)
	}
	b := l.cores["b"]
	d, _ := b.makeDelta(causal.Vector{})
	seed(wire.ReplicatorDelta, encodeDelta(d))
	seed(wire.ReplicatorPart, encodeSnapshot(snapshot{b.Seen(), b.Keys()}))
	f.Fuzz(func(t *testing.T, manifest uint32, payload []byte) {
		l := newLab(t, "a", "b")
		l.update("a", Level{Kind: All}, add("s", "y"), count("c", "k", 1))
		a := l.cores["a"]
		a.request(a.peer("b"))
		a.incoming.id = 1
		l.step("a", Read{ID: 1, Level: majority, Deadline: l.now.Add(time.Second)})
		seen, malformed := a.Seen(), a.Stats().Malformed
		before := stateBytes(a)
		l.step("a", Receive{Member: "b", From: l.cores["b"].Replica(), To: a.Replica(), Manifest: wire.Manifest(manifest), Payload: payload})
		require.True(t, seen.Leq(a.Seen()))
		if a.Stats().Malformed > malformed {
			require.Equal(t, before, stateBytes(a))
		}
		l.now = l.now.Add(time.Minute)
		l.step("a", Wake{})
	})
}

// FuzzDecode decodes arbitrary bytes as the payloads that are decoded by hand; what is accepted encodes
// to something that decodes to the same.
func FuzzDecode(f *testing.F) {
	l := newLab(&testing.T{}, "a", "b")
	l.update("b", Level{}, add("s", "x"), count("c", "k", 3))
	l.update("b", Level{}, drop("c", "k"), op{kind: opDelete, key: "s"})
	b := l.cores["b"]
	d, _ := b.makeDelta(causal.Vector{})
	f.Add(encodeDelta(d))
	f.Add(encodeSnapshot(snapshot{b.Seen(), b.Keys()}))
	f.Fuzz(func(t *testing.T, src []byte) {
		if d, err := decodeDelta(src); err == nil {
			again, err := decodeDelta(encodeDelta(d))
			require.NoError(t, err)
			require.Equal(t, encodeDelta(d), encodeDelta(again))
		}
		if s, err := decodeSnapshot(src); err == nil {
			again, err := decodeSnapshot(encodeSnapshot(s))
			require.NoError(t, err)
			require.Equal(t, encodeSnapshot(s), encodeSnapshot(again))
		}
	})
}
