package distributeddata_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// BenchmarkLocal measures local operations on one member with n entries: the cost of a call without
// a network.
func BenchmarkLocal(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		_, dd, stop := startMember()
		ctx := context.Background()
		names := make([]distributeddata.Key[items], keys)
		for i := range names {
			names[i] = distributeddata.NewKey(fmt.Sprintf("key-%06d", i), items{})
			if _, err := names[i].Update(ctx, dd, func(w *crdt.Writer, v *items) error {
				v.Add(w, "milk")
				return nil
			}, local); err != nil {
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
				_, err := names[i%keys].Update(ctx, dd, func(w *crdt.Writer, v *items) error {
					v.Add(w, "bread")
					return nil
				}, local)
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		stop()
	}
}

// BenchmarkLocalByMessage measures the same by message, from n actors that each wait for their
// answer.
func BenchmarkLocalByMessage(b *testing.B) {
	for _, callers := range []int{1, 64} {
		for _, op := range []string{"get", "update", "direct"} {
			b.Run(fmt.Sprintf("op=%s/callers=%d", op, callers), func(b *testing.B) {
				byMessage(b, op, callers)
			})
		}
	}
}

func byMessage(b *testing.B, op string, callers int) {
	system, dd, stop := startMember()
	defer stop()
	key := distributeddata.NewKey("key", crdt.PNCounter{})
	add := func(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, 1); return nil }
	if _, err := key.Update(context.Background(), dd, add, local); err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	ask := func(ctx actor.Context) {
		switch {
		case left.Add(-1) < 0:
			ctx.Stop(ctx.Self())
		case op == "get":
			ctx.Request(dd.PID(), &distributeddata.Get[crdt.PNCounter]{Key: key})
		default:
			ctx.Request(dd.PID(), &distributeddata.Update[crdt.PNCounter]{Key: key,
				At: local, Modify: add})
		}
	}
	var done sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		done.Add(1)
		if op == "direct" {
			go func() {
				defer done.Done()
				for left.Add(-1) >= 0 {
					_, _ = key.Update(context.Background(), dd, add, local)
				}
			}()
			continue
		}
		system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Stopped:
				done.Done()
			case *actor.Started, *distributeddata.GetResponse[crdt.PNCounter],
				*distributeddata.UpdateResponse[crdt.PNCounter]:
				ask(ctx)
			}
		}))
	}
	done.Wait()
}
