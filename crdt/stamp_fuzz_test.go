package crdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// FuzzLWWRegister_Stamps lets two replicas write concurrently with arbitrary stamps, as wrong
// clocks do. The larger stamp wins; if the stamps are equal, the larger replica id wins, in every
// order of merges. A write made after seeing both is read everywhere, even after the largest
// possible stamp.
func FuzzLWWRegister_Stamps(f *testing.F) {
	f.Add(uint64(0), uint64(0))
	f.Add(uint64(1), uint64(math.MaxUint64))
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64))
	f.Add(uint64(math.MaxInt64), uint64(math.MaxInt64)+1)
	f.Fuzz(func(t *testing.T, a, b uint64) {
		at := func(replica crdt.ReplicaID, v crdt.LWWRegister[string], e string,
			stamp uint64) crdt.LWWRegister[string] {
			_, err := crdt.Update(crdt.NewReplica(replica), &v,
				func(w *crdt.Writer, r *crdt.LWWRegister[string]) error {
					require.True(t, r.SetAt(w, e, stamp))
					return nil
				})
			require.NoError(t, err)
			return v
		}
		left := at(1, crdt.LWWRegister[string]{}, "left", a)
		right := at(2, crdt.LWWRegister[string]{}, "right", b)
		want, stamp := "right", b
		if a > b {
			want, stamp = "left", a
		}
		for _, merged := range []crdt.LWWRegister[string]{left.Merge(right), right.Merge(left)} {
			got, ok := merged.Value()
			require.True(t, ok)
			require.Equal(t, want, got)
			require.Equal(t, stamp, merged.Stamp())

			after := merged
			_, err := crdt.Update(crdt.NewReplica(3), &after,
				func(w *crdt.Writer, r *crdt.LWWRegister[string]) error {
					r.Set(w, "after")
					return nil
				})
			require.NoError(t, err)
			require.GreaterOrEqual(t, after.Stamp(), stamp)
			for _, met := range []crdt.LWWRegister[string]{after.Merge(left), right.Merge(after),
				merged.Merge(after)} {
				got, _ := met.Value()
				require.Equal(t, "after", got)
			}
		}
	})
}
