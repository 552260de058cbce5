// Command grains compares package sharding/grains with Proto.Actor's disthash, alternating between
// the two in one run: each has two members in this process and a real connection. Absolute numbers
// depend on the load of the machine; ratios depend less on it.
package main

import (
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/protobuf/protoc-gen-go-grain/test/hello"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/grains"
)

var (
	rounds  = flag.Int("rounds", 7, "rounds of each comparison")
	calls   = flag.Int("calls", 20_000, "calls in a round")
	fresh   = flag.Int("fresh", 10_000, "activations in a round")
	idle    = flag.Int("idle", 100_000, "idle grains")
	profile = flag.String("profile", "", "file for a profile of the activations of package grains")
)

func main() {
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// greeter is the grain: it has no state.
type greeter struct{}

func (greeter) Init(cluster.GrainContext)           {}
func (greeter) Terminate(cluster.GrainContext)      {}
func (greeter) ReceiveDefault(cluster.GrainContext) {}

func (greeter) SayHello(_ *emptypb.Empty,
	ctx cluster.GrainContext) (*hello.SayHelloResponse, error) {
	return &hello.SayHelloResponse{Message: ctx.Self().Address}, nil
}

// pair is a cluster of two members.
type pair struct {
	name    string
	members [2]*cluster.Cluster
	local   []string // identities of grains at the first member
	remote  []string // and at the second
	next    atomic.Int64
}

func start(name string,
	lookup func(*actor.ActorSystem) (cluster.IdentityLookup, error)) (*pair, error) {
	p := &pair{name: name}
	ports, err := measure.Ports(len(p.members))
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, port := range ports {
		hosts = append(hosts, fmt.Sprint("127.0.0.1:", port))
	}
	for i := range p.members {
		system := measure.System()
		found, err := lookup(system)
		if err != nil {
			return nil, err
		}
		provider := automanaged.NewWithConfig(200*time.Millisecond, ports[i], hosts...)
		// node.Remote guards one cluster a process.
		p.members[i] = cluster.New(system, node.Cluster(name, provider,
			remote.Configure("127.0.0.1", 0),
			cluster.WithKinds(hello.NewHelloKind(func() hello.Hello { return greeter{} }, 0)),
			func(c *cluster.Config) { c.IdentityLookup = found }))
		p.members[i].StartMember()
	}
	return p, nil
}

// call calls a grain, until it answers, and returns the address of its member.
func (p *pair) call(identity string) string {
	for end := time.Now().Add(time.Minute); ; {
		r, err := hello.GetHelloGrainClient(p.members[0], identity).SayHello(&emptypb.Empty{})
		if err == nil {
			return r.Message
		}
		if time.Now().After(end) {
			log.Fatal(p.name, ": ", err)
		}
	}
}

// warm activates grains at both members.
func (p *pair) warm() {
	for n := 0; len(p.local) < 100 || len(p.remote) < 100; n++ {
		identity := fmt.Sprint("warm-", n)
		if p.call(identity) == p.members[0].ActorSystem.Address() {
			p.local = append(p.local, identity)
		} else {
			p.remote = append(p.remote, identity)
		}
	}
}

// rate returns how many calls of grains a number of callers make in a second.
func (p *pair) rate(n, callers int, identity func(i int) string) float64 {
	var next atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for range callers {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				p.call(identity(int(i)))
			}
		})
	}
	all.Wait()
	return float64(n) / time.Since(begun).Seconds()
}

// new returns an identity that has not been used.
func (p *pair) new(int) string { return fmt.Sprint("new-", p.next.Add(1)) }

func of(identities []string) func(int) string {
	return func(i int) string { return identities[i%len(identities)] }
}

func run() error {
	store := memory.New()
	ours, err := start("ours", func(s *actor.ActorSystem) (cluster.IdentityLookup, error) {
		return grains.New(s, grains.Config{Store: store, MinMembers: 2,
			Sharding: sharding.Config{MaxMoves: -1}})
	})
	if err != nil {
		return err
	}
	theirs, err := start("theirs", func(*actor.ActorSystem) (cluster.IdentityLookup, error) {
		return disthash.New(), nil
	})
	if err != nil {
		return err
	}
	ours.warm()
	theirs.warm()
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d CPUs, %s, load average %s\n", runtime.GOMAXPROCS(0), runtime.Version(), load)
	for _, c := range []struct {
		what       string
		n, callers int
		identity   func(p *pair) func(int) string
	}{
		{"local, 1 caller", *calls, 1, func(p *pair) func(int) string { return of(p.local) }},
		{"local, 64 callers", *calls, 64, func(p *pair) func(int) string { return of(p.local) }},
		{"remote, 1 caller", *calls / 4, 1, func(p *pair) func(int) string { return of(p.remote) }},
		{"remote, 64 callers", *calls, 64, func(p *pair) func(int) string { return of(p.remote) }},
		{"activation, 1 caller", *fresh, 1, func(p *pair) func(int) string { return p.new }},
		{"activation, 64 callers", *fresh, 64, func(p *pair) func(int) string { return p.new }},
	} {
		stop := profiled(strings.HasPrefix(c.what, "activation"))
		var a, b, ratio []float64
		for range *rounds {
			x := theirs.rate(c.n, c.callers, c.identity(theirs))
			y := ours.rate(c.n, c.callers, c.identity(ours))
			a, b, ratio = append(a, x), append(b, y), append(ratio, y/x)
		}
		stop()
		fmt.Printf("%-24s disthash %8.0f/s, grains %8.0f/s, rate × %.2f (%.2f to %.2f), time × %.2f\n",
			c.what, measure.Median(a), measure.Median(b), measure.Median(ratio), slices.Min(ratio),
			slices.Max(ratio), 1/measure.Median(ratio))
	}
	for _, p := range []*pair{theirs, ours} {
		before := measure.Heap()
		p.rate(*idle, 64, p.new)
		p.members[0].PidCache = cluster.NewPidCache() // else its entries would count
		fmt.Printf("%-24s %d B\n", "idle grain, "+p.name,
			(measure.Heap()-before)/int64(*idle))
	}
	return nil
}

func profiled(on bool) (stop func()) {
	if !on || *profile == "" {
		return func() {}
	}
	f, err := os.Create(*profile)
	if err != nil {
		log.Fatal(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		log.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}
