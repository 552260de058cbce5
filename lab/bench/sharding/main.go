//go:build unix

// Command sharding compares entities with bare actors of Proto.Actor, alternating between the two
// in one run, with two members in this process and a real connection. Absolute numbers depend on
// the load of the machine; ratios depend less on it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
)

type message = proto.Message

var (
	profile = flag.String("profile", "", "file for a profile of the tells and starts")
	only    = flag.String("only", "",
		"the measurements that begin with this: local tell, remote tell, start, spread")
	moves    = flag.Int("moves", 20, "shards of 1,000 entities to move")
	rounds   = flag.Int("rounds", 7, "rounds of each comparison")
	entities = flag.Int("entities", 200_000, "entities to start")
	spreads  = flag.Int("spread", 1_000_000, "entities to start over three members")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// counter counts the messages handled by actors and entities.
type counter struct{ handled atomic.Int64 }

func (c *counter) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *wrapperspb.Int64Value:
		c.handled.Add(1)
	case *wrapperspb.StringValue:
		ctx.Respond(ctx.Message())
	}
}

// wait waits until n more messages have been handled, and returns the time since begun.
func (c *counter) wait(n int64, begun time.Time) time.Duration {
	for c.handled.Load() < n {
		if time.Since(begun) > 5*time.Minute {
			log.Fatalf("%d of %d messages are handled", c.handled.Load(), n)
		}
		time.Sleep(50 * time.Microsecond)
	}
	return time.Since(begun)
}

// member is one of the two members.
type member struct {
	cluster *cluster.Cluster
	system  *actor.ActorSystem
	session *coordination.Session
	data    *distributeddata.Replicator
	many    *sharding.Region[message] // 64 shards: each number has a local and a remote entity
	moved   []*sharding.Region[message]
}

// join returns a member of a cluster that has no regions and is not started.
func join(name string, ports []int, i int, store coordination.Store,
	ttl time.Duration) (*member, error) {
	m := &member{system: measure.System()}
	rc, err := node.Remote(node.Config{})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, port := range ports {
		addresses = append(addresses, fmt.Sprint("127.0.0.1:", port))
	}
	provider := automanaged.NewWithConfig(200*time.Millisecond, ports[i], addresses...)
	m.cluster = cluster.New(m.system, node.Cluster(name, provider, rc))
	if m.session, err = coordination.Open(store, coordination.Config{TTL: ttl}); err != nil {
		return nil, err
	}
	m.data, err = distributeddata.New(m.system, distributeddata.Config{MinMembers: 1})
	return m, err
}

// region adds a region to a member.
func (m *member) region(typ string, shards, members int,
	count *counter) (*sharding.Region[message], error) {
	cfg := sharding.Config{Type: typ, Shards: shards, MinMembers: members, MaxMoves: -1}
	return sharding.New[message](m.system, m.session, m.data, cfg,
		func(sharding.Entity) actor.Actor {
			return count
		})
}

// regions adds the regions of the comparisons and of the moves.
func (m *member) regions(count *counter) (err error) {
	if m.many, err = m.region("many", 64, 2, count); err != nil {
		return err
	}
	for k := range *moves {
		r, err := m.region(fmt.Sprint("moved-", k), 1, 2, count)
		if err != nil {
			return err
		}
		m.moved = append(m.moved, r)
	}
	return nil
}

// start starts all members.
func start(ctx context.Context, members ...*member) error {
	errs := make(chan error, len(members))
	for _, m := range members {
		go func() { errs <- node.Start(ctx, m.cluster) }()
	}
	var all []error
	for range members {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func stop(ctx context.Context, members ...*member) {
	for _, m := range members {
		in, cancel := context.WithTimeout(ctx, 20*time.Second)
		_ = node.Shutdown(in, m.cluster)
		_ = m.session.Close(in)
		cancel()
	}
}

// bench holds both members, seen from the first.
type bench struct {
	count         *counter
	a, b          *member
	local, remote []sharding.Ref[message]
	bare          []*actor.PID // local
	far           []*actor.PID // remote
}

func run(ctx context.Context) error {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if *only == "spread" {
		return spread(ctx, *spreads)
	}
	store, count := memory.New(), &counter{}
	ports, err := measure.Ports(2)
	if err != nil {
		return err
	}
	x := &bench{count: count}
	for i, m := range []**member{&x.a, &x.b} {
		if *m, err = join("bench", ports, i, store, 20*time.Second); err != nil {
			return err
		}
		if err = (*m).regions(count); err != nil {
			return err
		}
	}
	if err := start(ctx, x.a, x.b); err != nil {
		return err
	}
	if err := x.settle(); err != nil {
		return err
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d CPUs, %s, load average %s\n", runtime.GOMAXPROCS(0), runtime.Version(), load)
	err = x.profiled(func() {
		x.tells()
		if strings.HasPrefix("start", *only) {
			x.starts()
		}
	})
	if err != nil || *only != "" {
		return err
	}
	if err := x.darkness(ctx); err != nil {
		return err
	}
	stop(ctx, x.a, x.b)
	*x = bench{} // its memory would count
	return spread(ctx, *spreads)
}

// profiled writes a profile of do if requested.
func (x *bench) profiled(do func()) error {
	if *profile == "" {
		do()
		return nil
	}
	f, err := os.Create(*profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	do()
	pprof.StopCPUProfile()
	return f.Close()
}

// settle waits until all shards are active, and selects local and remote entities.
func (x *bench) settle() error {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		here, there := x.a.many.Status().Count(sharding.Active),
			x.b.many.Status().Count(sharding.Active)
		if here+there == 64 {
			break
		}
		if time.Since(begun) > 30*time.Second {
			return fmt.Errorf("%d and %d shards are active", here, there)
		}
	}
	shards := x.a.many.Status().Shards
	for k := 0; len(x.local) < 1000 || len(x.remote) < 1000; k++ {
		ref := x.a.many.Ref(fmt.Sprint("entity-", k))
		if shards[ref.Shard()].State == sharding.Active {
			x.local = append(x.local, ref)
		} else {
			x.remote = append(x.remote, ref)
		}
	}
	props := actor.PropsFromProducer(func() actor.Actor { return x.count })
	for range 1000 {
		x.bare = append(x.bare, x.a.system.Root.Spawn(props))
		x.far = append(x.far, x.b.system.Root.Spawn(props))
	}
	return nil
}

// tells compares Ref.Tell with Send to a bare actor.
func (x *bench) tells() {
	const here, there = 1_000_000, 100_000
	msg := wrapperspb.Int64(1)
	bare := func(to []*actor.PID, targets int) func(int) {
		return func(i int) { x.a.system.Root.Send(to[i%targets], msg) }
	}
	tell := func(to []sharding.Ref[message], targets int) func(int) {
		return func(i int) {
			if err := to[i%targets].Tell(msg); err != nil {
				log.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		what        string
		n           int
		bare, shard func(int)
	}{
		{"local tell, one entity", here, bare(x.bare, 1), tell(x.local, 1)},
		{"local tell, 1,000 entities in turn", here, bare(x.bare, 1000), tell(x.local, 1000)},
		{"remote tell, one entity", there, bare(x.far, 1), tell(x.remote, 1)},
		{"remote tell, 1,000 entities in turn", there, bare(x.far, 1000), tell(x.remote, 1000)},
	} {
		if !strings.HasPrefix(c.what, *only) {
			continue
		}
		x.rate(c.bare, 1000)
		x.rate(c.shard, 1000) // starts the entities
		var plain, entity, ratio []float64
		for range *rounds {
			p, e := x.rate(c.bare, c.n), x.rate(c.shard, c.n)
			plain, entity, ratio = append(plain, p), append(entity, e), append(ratio, e/p)
		}
		fmt.Printf("%-38s bare %9.0f/s, entity %9.0f/s, ratio %.2f (%.2f to %.2f)\n", c.what,
			measure.Median(plain), measure.Median(entity), measure.Median(ratio), slices.Min(ratio),
			slices.Max(ratio))
	}
}

// window bounds the messages in flight, which neither remoting nor mailboxes do.
const window = 10_000

// rate sends n messages, and returns the number handled per second.
func (x *bench) rate(send func(int), n int) float64 {
	base, begun := x.count.handled.Load(), time.Now()
	for i := range n {
		if i%1000 == 0 && i >= window {
			x.count.wait(base+int64(i-window), begun)
		}
		send(i)
	}
	return float64(n) / x.count.wait(base+int64(n), begun).Seconds()
}

// starts measures the start of entities by their first message, and the memory of idle entities.
func (x *bench) starts() {
	shards := x.a.many.Status().Shards
	refs := make([]sharding.Ref[message], 0, *entities)
	for k := 0; len(refs) < *entities; k++ {
		if ref := x.a.many.Ref(
			fmt.Sprint("new-", k)); shards[ref.Shard()].State == sharding.Active {
			refs = append(refs, ref)
		}
	}
	msg := wrapperspb.Int64(1)
	before, work := measure.Heap(), processor()
	rate := x.rate(func(i int) {
		if err := refs[i].Tell(msg); err != nil {
			log.Fatal(err)
		}
	}, len(refs))
	work = processor() - work
	took := measure.Heap() - before
	fmt.Printf("%-38s %9.0f/s, %.1f µs of processor time each\n",
		fmt.Sprintf("start of %d entities", len(refs)), rate,
		float64(work.Nanoseconds())/1000/float64(len(refs)))
	fmt.Printf("%-38s %9d B\n", "an idle entity beyond user state", took/int64(len(refs)))
	runtime.KeepAlive(refs)
}

// processor returns the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// darkness moves shards of 1,000 entities: their host gives them up, while the other member
// continuously sends requests to one entity. It prints the longest time without an answer for each
// move.
func (x *bench) darkness(ctx context.Context) error {
	var dark []float64
	for k := range *moves {
		from, to := x.a.moved[k], x.b.moved[k]
		if from.Status().Count(sharding.Active) == 0 {
			from, to = to, from
		}
		for e := range 1000 {
			if err := to.Ref(fmt.Sprint("e", e)).Tell(wrapperspb.Int64(1)); err != nil {
				return err
			}
		}
		for from.Status().Entities() < 1000 {
			time.Sleep(time.Millisecond)
		}
		done := make(chan error, 1)
		go func() { done <- from.Close(ctx) }()
		worst, last, moved := time.Duration(0), time.Now(), false
		for n := 0; !moved || n < 100; n++ {
			if _, err := to.Ref("e7").Ask(ctx, wrapperspb.String("?")); err != nil {
				return err
			}
			worst, last = max(worst, time.Since(last)), time.Now()
			if !moved && to.Status().Count(sharding.Active) == 1 {
				moved, n = true, 0
			}
		}
		if err := <-done; err != nil {
			return err
		}
		dark = append(dark, float64(worst.Microseconds())/1000)
	}
	slices.Sort(dark)
	fmt.Printf("%-38s %.0f ms (median), %.0f ms (longest of %d)\n",
		"a move of 1,000 entities is dark for", measure.Median(dark), dark[len(dark)-1], len(dark))
	return nil
}
