package crdt_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// The files in testdata/golden are encodings written by earlier versions. They must decode forever,
// to the value beside them. Set UPDATE_GOLDEN=1 to write those of new types. If a file changes,
// data on disks is lost.

func checkGolden[T crdt.Value[T]](t *testing.T, name string, empty, v T, text func(T) string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		line := text(v) + "\n" + hex.EncodeToString([]byte(encode(t, v))) + "\n"
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(line), 0o644))
	}
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(string(file), "\n")
	b, err := hex.DecodeString(lines[1])
	require.NoError(t, err)
	got, err := empty.Decode(b)
	require.NoError(t, err)
	require.Equal(t, lines[0], text(got))
	require.Equal(t, lines[1], hex.EncodeToString([]byte(encode(t, v))),
		"the encoding of new values changed")
	require.Equal(t, encode(t, v), encode(t, got))
}

func TestGolden(t *testing.T) {
	now := func() uint64 { return 1_700_000_000_000 }
	alice, bob := crdt.NewReplicaWithClock(0xa11ce, now), crdt.NewReplicaWithClock(0xb0b, now)

	var g crdt.GCounter
	g.Add(alice.Writer(), 300)
	g.Add(bob.Writer(), 4)
	checkGolden(t, "gcounter", crdt.GCounter{}, g, crdt.GCounter.String)

	var p crdt.PNCounter
	p.Add(alice.Writer(), 300)
	p.Add(alice.Writer(), -1)
	p.Add(bob.Writer(), -1000)
	checkGolden(t, "pncounter", crdt.PNCounter{}, p, crdt.PNCounter.String)

	var s, s2 crdt.ORSet[string]
	s.Add(alice.Writer(), "bread", "milk", "milk chocolate")
	s2.Add(bob.Writer(), "milk", "tea")
	s = s.Merge(s2)
	s.Remove(bob.Writer(), "tea")
	checkGolden(t, "orset-string", crdt.ORSet[string]{}, s, crdt.ORSet[string].String)

	var n crdt.ORSet[int64]
	n.Add(alice.Writer(), -1<<63, -257, -256, -1, 0, 1, 255, 256, 1<<63-1)
	checkGolden(t, "orset-int", crdt.ORSet[int64]{}, n, crdt.ORSet[int64].String)

	var u crdt.ORSet[uint16]
	u.Add(alice.Writer(), 0, 1, 256, 65535)
	checkGolden(t, "orset-uint", crdt.ORSet[uint16]{}, u, crdt.ORSet[uint16].String)

	var b crdt.ORSet[bool]
	b.Add(alice.Writer(), true, false)
	checkGolden(t, "orset-bool", crdt.ORSet[bool]{}, b, crdt.ORSet[bool].String)

	var f crdt.ORSet[float64]
	f.Add(alice.Writer(), -1.5, 0, 2.25)
	checkGolden(t, "orset-float", crdt.ORSet[float64]{}, f, crdt.ORSet[float64].String)

	points := crdt.NewORSet(crdt.JSON[point]())
	pv := points
	pv.Add(alice.Writer(), point{1, 2}, point{-3, 4})
	checkGolden(t, "orset-json", points, pv, crdt.ORSet[point].String)

	var r, r2 crdt.LWWRegister[string]
	r.Set(alice.Writer(), "alice")
	r2.Set(bob.Writer(), "bob")
	checkGolden(t, "lwwregister", crdt.LWWRegister[string]{}, r.Merge(r2),
		crdt.LWWRegister[string].String)

	var m crdt.LWWMap[string, int64]
	w := alice.Writer()
	m.Set(w, "stock/bread", 3)
	m.Set(w, "stock/milk", -7)
	m.Set(w, "nul\x00key", 0)
	checkGolden(t, "lwwmap", crdt.LWWMap[string, int64]{}, m, crdt.LWWMap[string, int64].String)

	var c counters
	addTo(&c, alice.Writer(), "reset", 10)
	addTo(&c, alice.Writer(), "kept", 10)
	c2 := counters{}.Merge(c)
	c2.Remove(bob.Writer(), "reset")
	addTo(&c, alice.Writer(), "reset", 5)
	checkGolden(t, "ormap-pncounter-marks", counters{}, c.Merge(c2), counters.String)

	type nested = crdt.ORMap[string, crdt.ORMap[int, crdt.ORSet[string]]]
	var d nested
	w = alice.Writer()
	d.Update(w, "outer", func(v *crdt.ORMap[int, crdt.ORSet[string]]) {
		v.Update(w, 7, func(s *crdt.ORSet[string]) { s.Add(w, "x", "y") })
	})
	checkGolden(t, "ormap-nested", nested{}, d, nested.String)
}

func TestGolden_Delta(t *testing.T) {
	alice, bob := crdt.NewReplica(0xa11ce), crdt.NewReplica(0xb0b)
	var c counters
	addTo(&c, alice.Writer(), "reset", 10)
	d, err := crdt.Update(bob, &c, func(w *crdt.Writer, c *counters) error {
		c.Remove(w, "reset")
		addTo(c, w, "new", 1)
		return nil
	})
	require.NoError(t, err)
	path := filepath.Join("testdata", "golden", "delta.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(hex.EncodeToString(deltaBytes(t, d))+"\n"),
			0o644))
	}
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(file)), hex.EncodeToString(deltaBytes(t, d)))
	got, err := crdt.ParseDelta(deltaBytes(t, d))
	require.NoError(t, err)
	require.Equal(t, "delta 0000000000000b0b:1: 1 added, 1 removed, 1 reset", got.String())
}

type point struct{ X, Y int }

// goldens returns the bytes of all golden files.
func goldens(t testing.TB) (out [][]byte) {
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(file)), "\n")
		b, err := hex.DecodeString(lines[len(lines)-1])
		require.NoError(t, err)
		out = append(out, b)
	}
	return out
}
