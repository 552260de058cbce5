package simnet

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
)

// Config of a cluster.
type Config struct {
	Options
	// Members is how many members there are at the start. They are listed everywhere at once.
	Members int
	// Roles returns the roles of the member that is started as the i-th, restarts included; nil: none.
	Roles func(i int) []string
	// Setup is called for each member that is started, when its system has its address and nothing is
	// listed yet: the place to attach components.
	Setup func(*Member)
	// System makes the system of a member; nil: NewSystem.
	System func(id string) *actor.ActorSystem
	// Provider lets members find out by themselves who is there; nil: they are told.
	Provider *Provider
}

// Member is one process of the cluster, from start to crash.
type Member struct {
	// Index counts processes in the order in which they were started.
	Index int
	// ID is the member id, and the id of the system.
	ID string
	// Address is host:port. A restarted process takes that of its predecessor.
	Address string
	Roles   []string
	System  *actor.ActorSystem

	// Guarded by Cluster.mu.
	gone   bool
	frozen bool
	lists  map[string]*Member // what its provider lists, by id
	told   []string           // ids of the last event
	heard  map[string]time.Time
	banned map[string]bool // ids that its provider has dropped; only with a Provider

	publishing sync.Mutex // held while an event is made and published, so that they keep their order
}

// String returns the id.
func (m *Member) String() string { return m.ID }

// Cluster plays the provider of every member: it publishes topology events as Proto.Actor does, from a
// list per member, which tests may change. Its methods may be called from any goroutine; events are published
// in the caller's, so a handler must not call them.
type Cluster struct {
	Net *Net
	cfg Config

	closed chan struct{}
	close  func()        // closes it, once
	looked chan struct{} // closed when no round of a provider runs any more

	mu      sync.Mutex
	members []*Member // all processes ever, by Index
}

// NewCluster returns a running cluster. Close it.
func NewCluster(cfg Config) *Cluster {
	c := &Cluster{Net: New(cfg.Options), cfg: cfg, closed: make(chan struct{}), looked: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	for i := range cfg.Members {
		c.Start(fmt.Sprintf("node-%d:1", i))
	}
	c.List(c.Live(), c.Live())
	if cfg.Provider != nil {
		go c.look()
	} else {
		close(c.looked)
	}
	return c
}

// Member returns the i-th process that was started.
func (c *Cluster) Member(i int) *Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[i]
}

// Live returns the processes that have not crashed or left.
func (c *Cluster) Live() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.members), func(m *Member) bool { return m.gone })
}

// Start starts a process at address, which nobody lists yet, itself included. What listened at the
// address before has crashed.
func (c *Cluster) Start(address string) *Member {
	c.mu.Lock()
	m := &Member{Index: len(c.members), Address: address, lists: map[string]*Member{}, heard: map[string]time.Time{}, banned: map[string]bool{}}
	m.ID = fmt.Sprintf("m%03d", m.Index)
	if c.cfg.Roles != nil {
		m.Roles = c.cfg.Roles(m.Index)
	}
	for _, o := range c.members {
		o.gone = o.gone || o.Address == address
	}
	c.members = append(c.members, m)
	c.mu.Unlock()

	if c.cfg.System != nil {
		m.System = c.cfg.System(m.ID)
	} else {
		m.System = NewSystem(m.ID)
	}
	c.Net.Join(m.System, address)
	if c.cfg.Setup != nil {
		c.cfg.Setup(m)
	}
	return m
}

// Join starts a process at an address of its own. It lists all that live, and they list it.
func (c *Cluster) Join() *Member {
	c.mu.Lock()
	address := fmt.Sprintf("node-%d:1", len(c.members))
	c.mu.Unlock()
	m := c.Start(address)
	c.List([]*Member{m}, c.Live())
	c.List(c.Live(), []*Member{m})
	return m
}

// Crash ends a process without a word. It stays listed; see Unlist.
func (c *Cluster) Crash(m *Member) {
	c.mu.Lock()
	m.gone = true
	c.mu.Unlock()
	c.Net.Crash(m.System)
}

// Leave ends a process in good order: the others drop it at once. The caller has stopped its
// components before.
func (c *Cluster) Leave(m *Member) {
	c.Crash(m)
	c.Unlist(c.Live(), []*Member{m})
}

// Expel lets the others drop a process that lives on, as providers do after a pause. It still lists
// them, and reaches them.
func (c *Cluster) Expel(m *Member) {
	others := slices.DeleteFunc(c.Live(), func(o *Member) bool { return o == m })
	c.Unlist(others, []*Member{m})
}

// Restart crashes a process and starts another one on its address. Whoever listed the old one lists
// the new one instead, in one event; the new one lists all that live.
func (c *Cluster) Restart(m *Member) *Member {
	c.Crash(m)
	next := c.Start(m.Address)
	live := c.Live()
	c.List([]*Member{next}, live)
	c.Replace(live, next)
	return next
}

// Replace lists next in place of former processes at its address, in one event for each observer.
func (c *Cluster) Replace(observers []*Member, next *Member) {
	for _, o := range observers {
		c.mu.Lock()
		var former []*Member
		for _, m := range o.lists {
			if m != next && m.Address == next.Address {
				former = append(former, m)
			}
		}
		c.mu.Unlock()
		c.change(o, []*Member{next}, former)
	}
}

// RestartBeside is Restart with a provider that has not noticed: both processes are listed, also by the
// new one, until the old one is taken out with Unlist.
func (c *Cluster) RestartBeside(m *Member) *Member {
	c.Crash(m)
	next := c.Start(m.Address)
	live := c.Live()
	c.List([]*Member{next}, append(slices.Clone(live), m))
	c.List(live, []*Member{next})
	return next
}

// Freeze holds what a process sends and receives, see Net.Freeze, and what its provider tells it.
func (c *Cluster) Freeze(m *Member) {
	c.mu.Lock()
	m.frozen = true
	c.mu.Unlock()
	c.Net.Freeze(m.System)
}

// Thaw ends Freeze. The process is told of the present members in one event, then gets its messages.
func (c *Cluster) Thaw(m *Member) {
	c.mu.Lock()
	m.frozen = false
	c.mu.Unlock()
	c.change(m, nil, nil)
	c.Net.Thaw(m.System)
}

// List adds members to what observers list, and publishes to each observer whose list has changed.
func (c *Cluster) List(observers, members []*Member) {
	for _, o := range observers {
		c.change(o, members, nil)
	}
}

// Unlist takes members out of what observers list, and publishes to each whose list has changed.
func (c *Cluster) Unlist(observers, members []*Member) {
	for _, o := range observers {
		c.change(o, nil, members)
	}
}

// Close ends the network. Run does it.
func (c *Cluster) Close() {
	c.close()
	<-c.looked
	c.Net.Close()
}

func (c *Cluster) change(o *Member, add, remove []*Member) {
	o.publishing.Lock()
	defer o.publishing.Unlock()
	c.mu.Lock()
	for _, m := range add {
		if !o.banned[m.ID] {
			o.lists[m.ID], o.heard[m.ID] = m, time.Now()
		}
	}
	for _, m := range remove {
		if o.lists[m.ID] != nil {
			delete(o.lists, m.ID)
			o.banned[m.ID] = c.cfg.Provider != nil
		}
	}
	t := o.news()
	c.mu.Unlock()
	if t != nil {
		o.System.EventStream.Publish(t)
	}
}

// news returns the event that the process is to be told now, nil for none.
func (m *Member) news() *cluster.ClusterTopology {
	if m.gone || m.frozen {
		return nil
	}
	return m.topology()
}

// topology returns the event from what was told before to what is listed now, nil if nothing changed.
func (m *Member) topology() *cluster.ClusterTopology {
	t := &cluster.ClusterTopology{}
	var ids []string
	for id := range m.lists {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if slices.Equal(ids, m.told) {
		return nil
	}
	for _, id := range ids {
		w := m.lists[id].wire()
		t.Members = append(t.Members, w)
		if !slices.Contains(m.told, id) {
			t.Joined = append(t.Joined, w)
		}
	}
	for _, id := range m.told {
		if m.lists[id] == nil {
			t.Left = append(t.Left, &cluster.Member{Id: id})
		}
	}
	t.TopologyHash = cluster.TopologyHash(slices.Clone(t.Members))
	m.told = ids
	return t
}

func (m *Member) wire() *cluster.Member {
	host, _, _ := strings.Cut(m.Address, ":")
	w := &cluster.Member{Id: m.ID, Host: host, Port: 1, Kinds: []string{"prototopic"}}
	for _, r := range m.Roles {
		w.Kinds = append(w.Kinds, "role."+r)
	}
	return w
}
