// Command counter counts page views at every member of a cluster. At each member, an actor is
// notified of the sum and answers queries from its last notification, without waiting for the
// network or the replicator.
//
//	go run ./examples/counter
//
//	member 1 counts 100 views, member 2 200, member 3 300
//	member 1 knows of 600 views
//	member 2 knows of 600 views
//	member 3 knows of 600 views
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

// Views is the counter of all members.
var Views = distributeddata.NewKey("views", crdt.PNCounter{})

// viewed reports a page view, howMany requests the sum.
type (
	viewed  struct{}
	howMany struct{}
)

// counter is the actor.
type counter struct {
	dd  *distributeddata.Replicator
	sum int64 // from the last notification
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.dd.Request(ctx, &distributeddata.Subscribe[crdt.PNCounter]{
			Key: Views, Subscriber: ctx.Self()})
	case *distributeddata.Changed[crdt.PNCounter]:
		c.sum = m.Value.Value()
	case *viewed: // without waiting for the result: many such updates together cost as much as one
		ctx.Send(c.dd.PID(), &distributeddata.Update[crdt.PNCounter]{
			Key: Views, At: distributeddata.Local,
			Modify: func(w *crdt.Writer, views *crdt.PNCounter) error {
				views.Add(w, 1)
				return nil
			}})
	case *howMany:
		ctx.Respond(c.sum)
	}
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	fmt.Fprintln(out, "member 1 counts 100 views, member 2 200, member 3 300")
	var counters [three.Members]*actor.PID
	for i, system := range c.System {
		counters[i] = system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &counter{dd: c.DD[i]}
		}))
		defer system.Root.Stop(counters[i])
		for range 100 * (i + 1) {
			system.Root.Send(counters[i], &viewed{})
		}
	}
	for i, system := range c.System {
		sum := func() any {
			answer, err := system.Root.RequestFuture(counters[i], &howMany{}, time.Minute).Result()
			if err != nil {
				return err
			}
			return answer
		}
		if err := three.Until(ctx, func() bool { return sum() == int64(600) }); err != nil {
			return err
		}
		fmt.Fprintf(out, "member %d knows of %d views\n", i+1, sum())
	}
	return nil
}
