package distributeddata_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// Local operations on one member, with so many entries there: what a call costs without a network.
func BenchmarkLocal(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		_, dd, stop := startMember()
		ctx := context.Background()
		names := make([]distributeddata.Key[items], keys)
		for i := range names {
			names[i] = distributeddata.NewKey(fmt.Sprintf("key-%06d", i), items{})
			if _, err := names[i].Update(ctx, dd, func(w *crdt.Writer, v *items) error { v.Add(w, "milk"); return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("op=get/keys=%d", keys), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := names[i%keys].Get(ctx, dd); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("op=update/keys=%d", keys), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, err := names[i%keys].Update(ctx, dd, func(w *crdt.Writer, v *items) error { v.Add(w, "bread"); return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		stop()
	}
}
