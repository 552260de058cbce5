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

// Config configures a cluster.
type Config struct {
	Options
	// Members is the number of members at the start. They are listed everywhere at once.
	Members int
	// Roles returns the roles of the i-th started member, counting restarts. If it is nil, members
	// have no roles.
	Roles func(i int) []string
	// AppVersion returns the application version of the i-th started member. If it is nil, members
	// announce none.
	AppVersion func(i int) string
	// Setup is called for each started member, when its system has its address and before any
	// member is listed. It attaches components.
	Setup func(*Member)
	// System creates the system of a member. The default is NewSystem.
	System func(id string) *actor.ActorSystem
	// Provider makes members discover each other by themselves. If it is nil, the test lists them.
	Provider *Provider
	// Unserialisable lets a test send what is not a protobuf message, which remoting drops.
	Unserialisable bool
}

// Member is one process of the cluster, from start to crash.
type Member struct {
	// Index numbers processes in the order in which they were started.
	Index int
	// ID is the member id, and the id of the system.
	ID string
	// Address is host:port. A restarted process keeps the address.
	Address string
	Roles   []string
	Version string   // of the application
	Kinds   []string // of virtual actors
	System  *actor.ActorSystem

	// Guarded by Cluster.mu.
	gone   bool
	frozen bool
	lists  map[string]*Member         // the members its provider lists, by id
	told   []string                   // ids in the last event
	wires  map[string]*cluster.Member // and the members
	heard  map[string]time.Time
	banned map[string]bool // ids that its provider has dropped; only with a Provider

	publishing sync.Mutex // held while an event is created and published, to keep events in order
}

// String returns the id.
func (m *Member) String() string { return m.ID }

// Cluster plays the provider of every member: it publishes topology events like Proto.Actor, from a
// list per member, which tests may change. It is safe for concurrent use. It publishes events in
// the caller's goroutine, so a handler must not call its methods.
type Cluster struct {
	Net *Net
	cfg Config

	closed chan struct{}
	close  func()        // closes it, once
	looked chan struct{} // closed when the last round of the providers has ended

	mu      sync.Mutex
	members []*Member // all processes ever, by Index
}

// NewCluster returns a running cluster. The caller must close it.
func NewCluster(cfg Config) *Cluster {
	c := &Cluster{Net: New(cfg.Options), cfg: cfg, closed: make(chan struct{}),
		looked: make(chan struct{})}
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

// Member returns the i-th started process.
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

// Start starts a process at address. No member lists it yet, not even itself. A previous process at
// the address has crashed.
func (c *Cluster) Start(address string) *Member {
	c.mu.Lock()
	m := &Member{Index: len(c.members), Address: address, lists: map[string]*Member{},
		heard: map[string]time.Time{}, banned: map[string]bool{}}
	m.ID = fmt.Sprintf("m%03d", m.Index)
	if c.cfg.Roles != nil {
		m.Roles = c.cfg.Roles(m.Index)
	}
	if c.cfg.AppVersion != nil {
		m.Version = c.cfg.AppVersion(m.Index)
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

// Join starts a process at a new address. It and all live processes list each other.
func (c *Cluster) Join() *Member {
	c.mu.Lock()
	address := fmt.Sprintf("node-%d:1", len(c.members))
	c.mu.Unlock()
	m := c.Start(address)
	c.List([]*Member{m}, c.Live())
	c.List(c.Live(), []*Member{m})
	return m
}

// Crash stops a process abruptly. It stays listed; see Unlist.
func (c *Cluster) Crash(m *Member) {
	c.mu.Lock()
	m.gone = true
	c.mu.Unlock()
	c.Net.Crash(m.System)
}

// Leave stops a process gracefully: the others drop it at once. The caller must have stopped its
// components before.
func (c *Cluster) Leave(m *Member) {
	c.Crash(m)
	c.Unlist(c.Live(), []*Member{m})
}

// Expel makes the others drop a process that continues to run, as providers do after a pause. The
// process still lists and reaches the others.
func (c *Cluster) Expel(m *Member) {
	others := slices.DeleteFunc(c.Live(), func(o *Member) bool { return o == m })
	c.Unlist(others, []*Member{m})
}

// Restart crashes a process and starts another one at its address. Members that listed the old one
// list the new one instead, in one event. The new one lists all live processes.
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

// RestartBeside is like Restart, but the providers have not noticed: both processes are listed,
// also by the new one, until the old one is removed with Unlist.
func (c *Cluster) RestartBeside(m *Member) *Member {
	c.Crash(m)
	next := c.Start(m.Address)
	live := c.Live()
	c.List([]*Member{next}, append(slices.Clone(live), m))
	c.List(live, []*Member{next})
	return next
}

// Freeze holds the messages to and from a process, see Net.Freeze, and the events of its provider.
func (c *Cluster) Freeze(m *Member) {
	c.mu.Lock()
	m.frozen = true
	c.mu.Unlock()
	c.Net.Freeze(m.System)
}

// Thaw ends Freeze. The process gets the current members in one event, and then its messages.
func (c *Cluster) Thaw(m *Member) {
	c.mu.Lock()
	m.frozen = false
	c.mu.Unlock()
	c.change(m, nil, nil)
	c.Net.Thaw(m.System)
}

// List adds members to the lists of observers, and publishes to each observer whose list has
// changed.
func (c *Cluster) List(observers, members []*Member) {
	for _, o := range observers {
		c.change(o, members, nil)
	}
}

// Unlist removes members from the lists of observers, and publishes to each whose list has changed.
func (c *Cluster) Unlist(observers, members []*Member) {
	for _, o := range observers {
		c.change(o, nil, members)
	}
}

// Close closes the network. Run calls it.
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

// news returns the event to publish to the process now, or nil if there is none.
func (m *Member) news() *cluster.ClusterTopology {
	if m.gone || m.frozen {
		return nil
	}
	return m.topology()
}

// topology returns the event for the difference between the last event and the current list, or nil
// if nothing has changed.
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
	wires := map[string]*cluster.Member{}
	for _, id := range ids {
		w := m.lists[id].wire()
		wires[id] = w
		t.Members = append(t.Members, w)
		if !slices.Contains(m.told, id) {
			t.Joined = append(t.Joined, w)
		}
	}
	for _, id := range m.told {
		if m.lists[id] == nil {
			t.Left = append(t.Left, m.wires[id])
		}
	}
	t.TopologyHash = cluster.TopologyHash(slices.Clone(t.Members))
	m.told, m.wires = ids, wires
	return t
}

func (m *Member) wire() *cluster.Member {
	host, _, _ := strings.Cut(m.Address, ":")
	w := &cluster.Member{Id: m.ID, Host: host, Port: 1, Kinds: []string{"prototopic"}}
	w.Kinds = append(w.Kinds, m.Kinds...)
	for _, r := range m.Roles {
		w.Kinds = append(w.Kinds, "role."+r)
	}
	if m.Version != "" {
		w.Kinds = append(w.Kinds, "version."+m.Version)
	}
	return w
}
