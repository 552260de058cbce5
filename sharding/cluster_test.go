package sharding_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv("CONCORD_LOG") == "" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	} else {
		slog.SetLogLoggerLevel(slog.LevelDebug)
	}
	goleak.VerifyTestMain(m)
}

// ttl is the TTL of the leases in tests. A contender may take over a stale lease after stale.
const (
	ttl   = 10 * time.Second
	stale = ttl*101/100 + 250*time.Millisecond
)

type message = proto.Message

// testCluster is a virtual cluster with entities of type "cart" on every member.
type testCluster struct {
	*simnet.Cluster
	t     *testing.T
	opts  options
	store memory.Store
	alive *observer
	nodes map[*simnet.Member]*node
}

type options struct {
	cfg     func(i int) sharding.Config
	roles   func(i int) []string
	version func(i int) string
	produce func(*node) func(sharding.Entity) actor.Actor
	proxies func(i int) bool
	unaware func(i int) bool // members of a version without the type
	setup   func(*node)
	plant   func(effect any) // called before each effect at the first member

	data func(*simnet.Member) distributeddata.Config // default: only MinMembers is set

	incarnations map[string]*lifecycle.Incarnations // of the processes at these addresses

	daemons  bool // workers, not entities
	majority bool // all members count in majorities, not only the first

	ttl   time.Duration // of the leases; 0: the usual one
	plain bool          // the lease store keeps no session records
	log   slog.Handler  // of all members; nil: none
	lossy bool          // members may send what is not protobuf, which is lost
}

// node is one member's part.
type node struct {
	*simnet.Member
	c       *testCluster
	region  *sharding.Region[message]
	data    *distributeddata.Replicator
	session *coordination.Session
	store   *faultyStore
	ready   error
}

func config(int) sharding.Config { return sharding.Config{Type: "cart", Shards: 16} }

func run(t *testing.T, n int, o options, test func(c *testCluster)) {
	t.Helper()
	c := &testCluster{t: t, opts: o, store: memory.New(), nodes: map[*simnet.Member]*node{}}
	if c.opts.cfg == nil {
		c.opts.cfg = config
	}
	c.alive = &observer{t: t, live: map[string]*entity{}, last: map[string]coordination.Token{}}
	simnet.Run(t, simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: n, Roles: o.roles,
		AppVersion: o.version, Setup: c.setup, System: c.newSystem, Unserialisable: o.lossy,
	}, func(t *testing.T, sc *simnet.Cluster) {
		c.Cluster, c.t = sc, t
		defer c.close()
		c.start()
		test(c)
	})
}

func (c *testCluster) setup(m *simnet.Member) {
	nd := &node{Member: m, c: c}
	c.nodes[m] = nd
	if c.opts.plant != nil && m.Index == 0 {
		shell.Plant(m.System, c.opts.plant)
	}
	if l := c.opts.incarnations[m.Address]; l != nil {
		l.Attach(m.System)
	}
	var err error
	data := distributeddata.Config{}
	if c.opts.data != nil {
		data = c.opts.data(m)
	}
	data.MinMembers = c.counted()
	nd.data, err = distributeddata.New(m.System, data)
	require.NoError(c.t, err)
	if c.opts.unaware != nil && c.opts.unaware(m.Index) {
		return
	}
	if c.opts.proxies != nil && c.opts.proxies(m.Index) {
		nd.region, err = sharding.NewProxy[message](m.System, nd.data, c.opts.cfg(m.Index))
		require.NoError(c.t, err)
		return
	}
	nd.store = &faultyStore{Store: testkit.NewStore(c.store)}
	var leases coordination.Store = nd.store
	if c.opts.plain {
		leases = plainStore{nd.store}
	}
	nd.session, err = coordination.Open(leases, coordination.Config{
		Owner: m.ID, TTL: cmp.Or(c.opts.ttl, ttl)})
	require.NoError(c.t, err)
	produce := func(e sharding.Entity) actor.Actor { return &entity{node: nd, Entity: e} }
	if c.opts.produce != nil {
		produce = c.opts.produce(nd)
	}
	begin := sharding.New[message]
	if c.opts.daemons {
		begin = sharding.NewDaemons[message]
	}
	nd.region, err = begin(m.System, nd.session, nd.data, c.opts.cfg(m.Index), produce)
	require.NoError(c.t, err)
	if c.opts.setup != nil {
		c.opts.setup(nd)
	}
}

func (c *testCluster) counted() int {
	if c.opts.majority {
		return 3
	}
	return 1
}

// start waits until all members are ready.
func (c *testCluster) start() {
	var wg sync.WaitGroup
	for _, nd := range c.nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			nd.ready = start(ctx, nd)
		})
	}
	wg.Wait()
}

func start(ctx context.Context, n *node) error { return lifecycle.Of(n.System).Start(ctx) }

// close stops everything, also on crashed members, because their goroutines continue to run.
func (c *testCluster) close() {
	for _, nd := range c.nodes {
		_ = nd.leave(20 * time.Second)
	}
	time.Sleep(time.Second)
	c.alive.done()
}

// leave closes the components of the member, in order.
func (n *node) leave(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return lifecycle.Of(n.System).Stop(ctx, func(ctx context.Context) error {
		if n.session != nil {
			return n.session.Close(ctx)
		}
		return nil
	})
}

func (c *testCluster) node(i int) *node { return c.nodes[c.Member(i)] }

func (n *node) ask(id, text string, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	reply, err := sharding.As[*wrapperspb.StringValue](n.region.Ref(id).Ask(ctx,
		wrapperspb.String(text)))
	return reply.GetValue(), err
}

func (n *node) tell(id, text string) {
	require.NoError(n.c.t, n.region.Ref(id).Tell(wrapperspb.String(text)))
}

// settled waits until every shard has a home among the nodes and is active there.
func (c *testCluster) settled(within time.Duration, nodes ...*node) time.Duration {
	c.t.Helper()
	begun := time.Now()
	for {
		active := 0
		for _, n := range nodes {
			active += n.region.Status().Count(sharding.Active)
		}
		if active == c.opts.cfg(0).Shards {
			return time.Since(begun)
		}
		if time.Since(begun) > within {
			c.t.Fatalf("%d shards are active after %v", active, within)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *testCluster) all() (out []*node) {
	for _, m := range c.Live() {
		out = append(out, c.nodes[m])
	}
	return out
}

// entity answers "who" with its member, and records every other message.
type entity struct {
	sharding.Entity
	node *node
}

func (e *entity) Receive(ctx actor.Context) {
	o := e.node.c.alive
	switch m := ctx.Message().(type) {
	case *actor.Started:
		o.start(e)
	case *actor.Stopped, *actor.Restarting:
		o.stop(e)
	case *wrapperspb.StringValue:
		if err := e.Check(); err != nil {
			o.t.Errorf("%s handles %q without a lease: %v", e.ID, m.Value, err)
		}
		e.handle(ctx, m.Value)
	}
}

func (e *entity) handle(ctx actor.Context, text string) {
	switch text {
	case "who":
		ctx.Respond(wrapperspb.String(e.node.ID))
	case "panic":
		panic("as asked")
	case "stop":
		ctx.Stop(ctx.Self())
	case "passivate":
		sharding.Passivate(ctx)
	case "self":
		s, ok := sharding.Self(ctx)
		ctx.Respond(wrapperspb.String(fmt.Sprint(s.Type, " ", s.ID, " ", s.Shard, " ",
			s.Token() == e.Token(), " ", ok)))
	case "forget":
		sharding.Forget(ctx)
	case "sleep":
		time.Sleep(5 * time.Second)
	case "swallow": // no answer
	case "stuck":
		for e.Check() == nil {
			time.Sleep(100 * time.Millisecond)
		}
	case "later":
		system, to := ctx.ActorSystem(), ctx.Sender()
		time.AfterFunc(5*time.Second, func() { system.Root.Send(to, wrapperspb.String(text)) })
	default:
		e.node.c.alive.note(e.ID, text)
		if ctx.Sender() != nil {
			ctx.Respond(wrapperspb.String(text))
		}
	}
}

// observer monitors every entity in true time.
type observer struct {
	t      *testing.T
	mu     sync.Mutex
	live   map[string]*entity
	last   map[string]coordination.Token
	seen   []string
	starts int
}

func (o *observer) start(e *entity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if was := o.live[e.ID]; was != nil {
		o.t.Errorf("%s starts at %v beside one at %v", e.ID, e.node, was.node)
	}
	if err := e.Check(); err != nil {
		o.t.Errorf("%s starts at %v without a lease: %v", e.ID, e.node, err)
	}
	if e.Token() < o.last[e.ID] {
		o.t.Errorf("%s at %v has token %v after %v", e.ID, e.node, e.Token(), o.last[e.ID])
	}
	o.live[e.ID], o.last[e.ID] = e, e.Token()
	o.starts++
}

func (o *observer) stop(e *entity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live[e.ID] == e {
		delete(o.live, e.ID)
	}
}

// forget drops the entities of a member that is about to crash, because its goroutines continue to
// run.
func (o *observer) forget(n *node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.live, func(_ string, e *entity) bool { return e.node == n })
}

func (o *observer) note(id, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, id+" "+text)
}

// notes returns the recorded messages that begin with prefix, without the prefix.
func (o *observer) notes(prefix string) (out []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.seen {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			out = append(out, rest)
		}
	}
	return out
}

// host returns the member where an entity lives; nil: none.
func (o *observer) host(id string) *node {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.live[id]; e != nil {
		return e.node
	}
	return nil
}

func (o *observer) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.live)
}

func (o *observer) done() {
	if n := o.count(); n > 0 {
		o.t.Errorf("%d entities left", n)
	}
}

func texts(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// crash stops a member without notice.
func (c *testCluster) crash(n *node) {
	c.Crash(n.Member)
	n.store.away(true)
	c.Unlist(c.Live(), []*simnet.Member{n.Member})
}

// faultyStore is the store as reached by one member.
type faultyStore struct {
	*testkit.Store
	spoil   atomic.Pointer[func(name string)] // called first by Load; nil: none
	refuses atomic.Bool                       // writes
}

var errAway = errors.New("store away")

func (f *faultyStore) away(off bool) {
	var faults testkit.StoreFaults
	if off {
		faults.Err = errAway
	}
	f.Set(faults)
}

func (f *faultyStore) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	if spoil := f.spoil.Load(); spoil != nil {
		(*spoil)(name)
	}
	return f.Store.Load(ctx, name)
}

func (f *faultyStore) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if f.refuses.Load() {
		return "", errAway
	}
	return f.Store.Swap(ctx, name, old, next)
}

func (f *faultyStore) SwapAll(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	if f.refuses.Load() {
		out := make([]leasestore.Swapped, len(swaps))
		for i := range out {
			out[i].Err = errAway
		}
		return out
	}
	return f.Store.SwapAll(ctx, swaps)
}
