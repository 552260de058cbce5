//go:build unix

package loopback

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// bare holds a number for each key, and sends each increment to the others. Lost messages are not
// resent.
type bare struct {
	totals  []atomic.Uint64
	others  []*actor.PID
	waiting map[uint64]*actor.PID // by update: the actor to answer
	last    uint64
}

type (
	bareGet struct{ key int }
	bareInc struct {
		key      int
		majority bool
	}
	bareTotal struct{ value uint64 }
)

// Receive implements actor.Actor. An update is sent as its number and key, and acknowledged with
// its number.
func (a *bare) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *bareGet:
		ctx.Respond(&bareTotal{a.totals[m.key].Load()})
	case *bareInc:
		total := a.totals[m.key].Add(1)
		a.last++
		for _, o := range a.others {
			ctx.Request(o, &wrapperspb.UInt64Value{Value: a.last<<8 | uint64(m.key)})
		}
		if m.majority {
			a.waiting[a.last] = ctx.Sender()
		} else if ctx.Sender() != nil {
			ctx.Respond(&bareTotal{total})
		}
	case *wrapperspb.UInt64Value:
		a.totals[m.Value&0xff].Add(1)
		ctx.Respond(&wrapperspb.Int64Value{Value: int64(m.Value >> 8)})
	case *wrapperspb.Int64Value:
		n := uint64(m.Value)
		if to := a.waiting[n]; to != nil {
			delete(a.waiting, n)
			ctx.Send(to, &bareTotal{})
		}
	}
}

func newBare(l *loopback) peer {
	b := l.b
	actors := make([]*bare, len(l.systems))
	pids := make([]*actor.PID, len(l.systems))
	for i, system := range l.systems {
		actors[i] = &bare{totals: make([]atomic.Uint64, 100), waiting: map[uint64]*actor.PID{}}
		if i == 0 {
			// The ports are those of actors; the hosts come from the provider.
			for _, other := range l.systems[1:] {
				actors[i].others = append(actors[i].others, actor.NewPID(other.Address(), "bare"))
			}
		}
		pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return actors[i] }), "bare")
		if err != nil {
			b.Fatal(fmt.Errorf("member %d: %w", i, err))
		}
		pids[i] = pid
	}
	return peer{
		b: b, target: pids[0],
		get:    func(key int) any { return &bareGet{key} },
		update: func(key int, majority bool) any { return &bareInc{key, majority} },
		send:   func(key int) { l.systems[0].Root.Send(pids[0], &bareInc{key: key}) },
		there: func(key int) bool {
			// The answer comes after all updates.
			res, err := l.systems[0].Root.RequestFuture(pids[0], &bareGet{key}, 5*time.Second).Result()
			if err != nil {
				b.Fatal(err)
			}
			n := res.(*bareTotal).value
			return actors[1].totals[key].Load() == n && actors[2].totals[key].Load() == n
		},
	}
}
