// Command daemons runs six workers on three members, two at each, exactly one instance of each
// worker. When a member is killed, the others take over its workers after its leases have expired.
// A worker runs without receiving messages, and checks its lease before each step.
//
//	go run ./examples/daemons
//
//	workers at each member: 2 2 2
//	worker 3 has handled "hello"
//	the member of worker 3 is killed
//	workers at each of the others: 3 3
//	no step of a worker was under an earlier token than the one before
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

const workers = 6

// step is the time between two steps of a worker.
const step = 20 * time.Millisecond

// plant is the resource of the workers. It rejects steps with a token below the last one.
type plant struct {
	regions [three.Members]*sharding.Region[*wrapperspb.StringValue]

	mu     sync.Mutex
	tokens map[int]coordination.Token // of the last step of each worker
	late   int
}

func (p *plant) work(worker int, token coordination.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if token < p.tokens[worker] {
		p.late++
		return
	}
	p.tokens[worker] = token
}

// attach prepares a member for hosting workers.
func (p *plant) attach(m three.Member) (err error) {
	p.regions[m.Index], err = sharding.NewDaemons[*wrapperspb.StringValue](m.System,
		m.Session, m.DD, sharding.Config{Type: "worker", Shards: workers, MinMembers: three.Members,
			StableAfter: time.Second},
		func(e sharding.Entity) actor.Actor { return &worker{Entity: e, plant: p} })
	return err
}

// worker works in a goroutine beside its actor until its lease ends or it is stopped.
type worker struct {
	sharding.Entity
	plant *plant
	stop  context.CancelFunc
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		var in context.Context
		in, w.stop = context.WithCancel(w.Context())
		go w.run(in)
	case *actor.Stopping, *actor.Restarting:
		w.stop()
	case *wrapperspb.StringValue:
		ctx.Respond(wrapperspb.String(fmt.Sprintf("worker %s has handled %q", w.ID, m.Value)))
	}
}

func (w *worker) run(ctx context.Context) {
	for w.Check() == nil {
		w.plant.work(w.Shard, w.Token())
		select {
		case <-time.After(step):
		case <-ctx.Done():
			return
		}
	}
}

// at returns the number of workers at each member except a killed one.
func (p *plant) at(killed int) (n []int) {
	for i, r := range p.regions {
		if i != killed {
			n = append(n, r.Status().Count(sharding.Active))
		}
	}
	return n
}

func (p *plant) run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := three.Until(ctx, func() bool {
		return slices.Equal(p.at(-1), []int{2, 2, 2})
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, "workers at each member: 2 2 2")
	reply, err := sharding.As[*wrapperspb.StringValue](p.regions[0].Ref("3").Ask(ctx,
		wrapperspb.String("hello")))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, reply.Value)

	victim := slices.IndexFunc(p.regions[:],
		func(r *sharding.Region[*wrapperspb.StringValue]) bool {
			return r.Status().Shards[3].State == sharding.Active
		})
	fmt.Fprintln(out, "the member of worker 3 is killed")
	c.Kill(victim)
	if err := three.Until(ctx, func() bool {
		return slices.Equal(p.at(victim), []int{3, 3})
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, "workers at each of the others: 3 3")

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late > 0 || len(p.tokens) != workers {
		return fmt.Errorf("%d steps under an earlier token, %d workers have worked", p.late,
			len(p.tokens))
	}
	fmt.Fprintln(out, "no step of a worker was under an earlier token than the one before")
	return nil
}

func newPlant() *plant { return &plant{tokens: map[int]coordination.Token{}} }

func main() {
	p := newPlant()
	if err := three.RunWithLeases(context.Background(), os.Stdout, memory.New(), p.attach,
		p.run); err != nil {
		log.Fatal(err)
	}
}
