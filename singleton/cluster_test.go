package singleton_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/singleton"
	"github.com/concord-go/concord/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// ttl is the TTL of the leases in tests. A contender may take a lease over after stale.
const (
	ttl   = 10 * time.Second
	stale = ttl*101/100 + 250*time.Millisecond
)

// testCluster is a virtual cluster with the singleton "jobs" at every member.
type testCluster struct {
	*simnet.Cluster
	t     *testing.T
	opts  options
	store memory.Store
	alive *observer
	nodes map[*simnet.Member]*node

	blocked chan struct{} // closed when no instance blocks any more; made in the bubble
	unblock func()
}

type options struct {
	cfg          singleton.Config
	roles        func(i int) []string
	version      func(i int) string
	adjust       func(i int, cfg *singleton.Config) // the configuration of one member
	produce      func(*testCluster, *node) func(coordination.Tenure) actor.Actor
	plain        bool          // the store cannot watch
	ttl          time.Duration // of the leases; 0: the usual one
	lossy        bool          // members may send what is not protobuf, which is lost
	away         bool          // the store is unavailable at first
	proxies      func(i int) bool
	unaware      func(i int) bool                   // members of a version without the singleton
	incarnations map[string]*lifecycle.Incarnations // of the processes at these addresses
	system       func(id string) *actor.ActorSystem

	sessions map[string]*coordination.Session // not nil: one for all incarnations at an address
	plant    func(effect any)                 // called before each effect at the first member
}

// node is one member's part of the singleton.
type node struct {
	*simnet.Member
	c       *testCluster
	single  *singleton.Singleton
	session *coordination.Session
	store   *faultyStore
}

func run(t *testing.T, n int, o options, test func(c *testCluster)) {
	t.Helper()
	c := &testCluster{t: t, opts: o, store: memory.New(), nodes: map[*simnet.Member]*node{}}
	if c.opts.cfg.Name == "" {
		c.opts.cfg.Name = "jobs"
	}
	c.alive = &observer{t: t}
	simnet.Run(t, simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: n, Roles: o.roles,
		AppVersion: o.version, Setup: c.setup, System: o.system, Unserialisable: o.lossy,
	}, func(t *testing.T, sc *simnet.Cluster) {
		c.Cluster, c.t = sc, t
		defer c.close()
		synctest.Wait() // all members are up
		test(c)
	})
}

func (c *testCluster) setup(m *simnet.Member) {
	if c.blocked == nil {
		c.blocked = make(chan struct{})
		c.unblock = sync.OnceFunc(func() { close(c.blocked) })
	}
	nd := &node{Member: m, c: c, store: &faultyStore{Store: testkit.NewStore(c.store)}}
	nd.store.away(c.opts.away)
	c.nodes[m] = nd
	if c.opts.plant != nil && m.Index == 0 {
		shell.Plant(m.System, c.opts.plant)
	}
	if l := c.opts.incarnations[m.Address]; l != nil {
		l.Attach(m.System)
	}
	if c.opts.unaware != nil && c.opts.unaware(m.Index) {
		membership.Attach(m.System) // it has other components
		return
	}
	if c.opts.proxies != nil && c.opts.proxies(m.Index) {
		s, err := singleton.NewProxy(m.System, c.opts.cfg)
		require.NoError(c.t, err)
		nd.single = s
		return
	}
	var store coordination.Store = nd.store
	if c.opts.plain {
		store = struct{ coordination.Store }{store}
	}
	session, kept := c.opts.sessions[m.Address]
	if !kept {
		var err error
		session, err = coordination.Open(store, coordination.Config{Owner: m.ID,
			TTL: cmp.Or(c.opts.ttl, ttl)})
		require.NoError(c.t, err)
	}
	if c.opts.sessions != nil {
		c.opts.sessions[m.Address] = session
	}
	nd.session = session
	produce := func(t coordination.Tenure) actor.Actor { return &worker{node: nd, tenure: t} }
	if c.opts.produce != nil {
		produce = c.opts.produce(c, nd)
	}
	cfg := c.opts.cfg
	if c.opts.adjust != nil {
		c.opts.adjust(m.Index, &cfg)
	}
	s, err := singleton.New(m.System, session, cfg, produce)
	require.NoError(c.t, err)
	nd.single = s
}

// close stops everything, also at crashed members, whose goroutines still run.
func (c *testCluster) close() {
	c.unblock()
	for _, nd := range c.nodes {
		_ = nd.leave(time.Second)
	}
	time.Sleep(100 * time.Millisecond)
	c.alive.done()
}

// leave closes the singleton and the session.
func (n *node) leave(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := n.single.Close(ctx)
	if n.session != nil {
		_ = n.session.Close(ctx)
	}
	return err
}

// at returns the living member at an address.
func (c *testCluster) at(address string) *simnetMember {
	for _, m := range c.Live() {
		if m.Address == address {
			return m
		}
	}
	return nil
}

func (n *node) members() *membership.Service { return membership.Attach(n.System) }

func (c *testCluster) node(i int) *node { return c.nodes[c.Member(i)] }

// ask sends text from member i and returns the reply "member token count".
func (n *node) ask(text string, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	reply, err := singleton.As[*wrapperspb.StringValue](n.single.Ask(ctx, wrapperspb.String(text)))
	return reply.GetValue(), err
}

// found waits until node n reaches the instance, and returns the host and how long it took.
func (c *testCluster) found(n *node, within time.Duration) (host string, took time.Duration) {
	c.t.Helper()
	start := time.Now()
	host, err := n.ask("who", within)
	require.NoError(c.t, err, "from %v", n)
	return host, time.Since(start)
}

// worker is the instance. It answers "who" with its member, and notes all other messages.
type worker struct {
	node   *node
	tenure coordination.Tenure
}

func (w *worker) Receive(ctx actor.Context) {
	o := w.node.c.alive
	switch m := ctx.Message().(type) {
	case *actor.Started:
		o.start(w)
	case *actor.Stopped, *actor.Restarting:
		o.stop(w)
	case *wrapperspb.StringValue:
		switch m.Value {
		case "who":
			ctx.Respond(wrapperspb.String(w.node.ID))
		case "panic":
			panic("as asked")
		case "stop":
			ctx.Stop(ctx.Self())
		case "nap":
			time.Sleep(100 * time.Millisecond)
		case "stuck":
			<-w.tenure.Context().Done()
			time.Sleep(100 * time.Millisecond)
		case "sleep":
			time.Sleep(5 * time.Second)
		default:
			o.note(m.Value)
			if ctx.Sender() != nil {
				ctx.Respond(wrapperspb.String(m.Value))
			}
		}
	}
}

// observer sees every instance in true time.
type observer struct {
	t      *testing.T
	mu     sync.Mutex
	alive  map[*worker]bool
	seen   []string
	starts []string // member of each instance
	last   coordination.Token
	ended  time.Time // when the last instance stopped
	begun  time.Time // when the last instance started
}

func (o *observer) start(w *worker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alive == nil {
		o.alive = map[*worker]bool{}
	}
	if len(o.alive) > 0 {
		o.t.Errorf("instance at %v starts beside another one", w.node)
	}
	if err := w.tenure.Check(); err != nil {
		o.t.Errorf("instance at %v starts without lease: %v", w.node, err)
	}
	if w.tenure.Token() < o.last {
		o.t.Errorf("instance at %v has token %v after %v", w.node, w.tenure.Token(), o.last)
	}
	o.alive[w], o.last, o.begun = true, w.tenure.Token(), time.Now()
	o.starts = append(o.starts, w.node.ID)
}

func (o *observer) stop(w *worker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.alive, w)
	o.ended = time.Now()
}

func (o *observer) note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, text)
}

func (o *observer) notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

func (o *observer) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.alive)
}

// gap is the time between the last two instances.
func (o *observer) gap() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun.Sub(o.ended)
}

func (o *observer) done() {
	if n := o.count(); n > 0 {
		o.t.Errorf("%d instances left", n)
	}
}

// faultyStore is the store as one member reaches it.
type faultyStore struct {
	*testkit.Store
	faults testkit.StoreFaults
}

var errAway = errors.New("store away")

func (f *faultyStore) away(off bool) {
	f.faults.Err = nil
	if off {
		f.faults.Err = errAway
	}
	f.Set(f.faults)
}

// slow delays answers.
func (f *faultyStore) slow(d time.Duration) {
	f.faults.Answer = d
	f.Set(f.faults)
}

func texts(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

type simnetMember = simnet.Member

func addresses(ms []*simnetMember) (out []string) {
	for _, m := range ms {
		out = append(out, m.Address)
	}
	return out
}
