package membership

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// peer is a listed member other than ourselves.
type peer struct {
	listed
	incarnation uint64    // 0 until its first hello
	stamp       uint64    // 0 while not known
	sequence    uint64    // of its last hello in this incarnation
	since       time.Time // listed, or known in this incarnation, since
	heard       time.Time // last hello in this incarnation; zero: none
	next        time.Time // when to greet it
	listedUs    bool      // it has said so, in this incarnation
	left        bool      // it has said that it leaves in order
	speaks      bool      // it knows permits
	poll        bool      // it is to answer the next hello
	against     int       // hellos in a row that say it does not list us
	againstAt   time.Time
}

// retired names an incarnation that has been replaced by another one of the same id.
type retired struct {
	id          string
	incarnation uint64
}

// core is the membership protocol as a state machine: no clock, no goroutine, no randomness, and no
// dependence on the order of maps. One goroutine calls step.
//
//	joining ──own address listed──▶ up, stamp 0 ──all answered, or time──▶ up, stamped
//	                                   └──── dropped, or in conflict and permitted ────┴──▶ removed (final)
type core struct {
	settings
	cluster     string
	address     string // ours
	systemID    string // a hint which id is ours when several are listed at our address
	incarnation uint64

	self    listed
	arrived map[string]int // ids listed at our address, by the number of the event that first did
	event   int            // number of the next topology event
	up      bool
	upAt    time.Time
	// waitSince is when waiting for the stamps of others began.
	waitSince time.Time
	told      bool // somebody has been sent our stamp
	removed   bool
	stamp     uint64
	maxStamp  uint64 // largest stamp heard of, ours included
	sequence  uint64 // of our last hello
	peers     map[string]*peer
	order     []*peer   // the same, by id
	former    []retired // oldest first, at most maxRetired
	view      *View     // the last published
	changed   bool      // what a view is made of, since seen
	seen      *View     // what is known now
	wake      time.Time // when one is wanted; zero: never

	listedAt    map[string]struct{} // addresses of peers
	viewAt      time.Time           // since when the same members are listed
	lost        []*lostAddress      // in the order in which they were lost, at most maxLost
	others      map[string]*other   // in conflict with us, by id, at most maxOthers
	dropped     []string            // ids that were listed once, oldest first, at most maxDropped
	permits     []permit            // given, at most a quarter of our fragment
	strangerAt  time.Time           // when a permit was given to a stranger
	requests    []request           // for a permit, of the last roundTrip
	askedAt     time.Time           // the last of them
	polledAt    time.Time           // when all of our view were asked whether they list us
	mine        *claim              // ours, nil when it has to be found anew
	arbiter     bool                // is held in our fragment
	disowned    bool                // by most of our view, each of them twice
	leaving     bool                // in order
	nameFrom    int                 // the next member to name
	split       []Member            // last reported
	lostChanged bool                // since the last report

	now         time.Time // of the event that is handled
	strangersAt time.Time // start of the current strangerGap
	strangersIn int       // strangers answered in it
	effects     []effect
}

func newCore(s settings, cluster, address, systemID string, incarnation uint64) *core {
	return &core{
		settings: s, cluster: cluster, address: address, systemID: systemID,
		incarnation: incarnation, peers: map[string]*peer{}, others: map[string]*other{},
	}
}

// Step takes one event at a time now, which never goes back, and returns what to do, in order.
func (c *core) Step(now time.Time, e event) []effect {
	c.effects, c.now = nil, now
	if c.removed {
		return nil
	}
	switch e := e.(type) {
	case topology:
		c.onTopology(now, e.members)
	case received:
		c.onHello(now, e)
	case named:
		c.onNamed(now, e)
	case leave:
		c.leave()
	case arbiter:
		c.arbiter, c.mine = e.here, nil
	}
	if !c.up || c.removed {
		c.wake = time.Time{}
		return c.effects
	}
	c.expire(now)
	c.fulfil(now)
	c.chooseStamp(now)
	c.look()
	c.greet(now)
	c.askLost(now)
	c.judge()
	c.giveWay(now)
	c.report(now)
	c.show()
	if c.wake = c.nextWake(now); c.removed {
		c.wake = time.Time{}
	}
	return c.effects
}

// NextWake is when the core wants a wake; zero: not at all.
func (c *core) NextWake() time.Time { return c.wake }

func (c *core) emit(e effect) { c.effects = append(c.effects, e) }

// onTopology replaces what is listed.
func (c *core) onTopology(now time.Time, members []listed) {
	self, ok := c.findSelf(members)
	if !ok {
		if c.up {
			c.remove(ErrDropped)
		}
		return
	}
	c.self, c.changed = self, true
	if !c.up {
		c.up, c.upAt, c.waitSince = true, now, now
	}
	still := make(map[string]*peer, len(members))
	c.listedAt = make(map[string]struct{}, len(members))
	for _, m := range members {
		if m.ID == self.ID || m.Address == c.address || len(still) == c.maxMembers {
			continue // a former process of our address is certainly gone
		}
		p := c.peers[m.ID]
		if p == nil || p.Address != m.Address {
			p = &peer{since: now, next: now}
		}
		p.listed = m
		still[m.ID] = p
		c.listedAt[m.Address] = struct{}{}
	}
	c.compare(now, still)
	c.peers = still
	c.order = slices.SortedFunc(maps.Values(still), func(a, b *peer) int { return strings.Compare(a.ID, b.ID) })
	if len(still) > 0 && c.mayWithdraw(now) {
		c.stamp, c.waitSince = 0, now
	}
}

// compare finds the members that are listed no more, and those that are again.
func (c *core) compare(now time.Time, still map[string]*peer) {
	changed := len(still) != len(c.peers) || c.viewAt.IsZero()
	for _, p := range c.order {
		if still[p.ID] != nil {
			continue
		}
		changed = true
		c.drop(p.ID)
		if !p.left && !c.lists(p.Address) {
			c.lose(now, p.Address, false)
		}
	}
	c.found(func(l *lostAddress) bool { return c.lists(l.address) })
	if changed {
		c.viewAt, c.mine = now, nil
	}
}

// findSelf returns the member at our address. When several are listed there, one is ours and the
// others are former processes that the provider has not dropped yet. Ours is the one named after
// our system, as most providers do; else the one that was listed last.
func (c *core) findSelf(members []listed) (listed, bool) {
	var at []listed
	arrived := map[string]int{}
	for _, m := range members {
		if m.Address != c.address {
			continue
		}
		at = append(at, m)
		arrived[m.ID] = c.event
		if n, ok := c.arrived[m.ID]; ok {
			arrived[m.ID] = n
		}
	}
	c.event++
	c.arrived = arrived
	if len(at) == 0 {
		return listed{}, false
	}
	named := func(m listed) int {
		switch {
		case m.ID == c.systemID:
			return 2
		case c.systemID != "" && strings.HasSuffix(m.ID, "@"+c.systemID):
			return 1
		}
		return 0
	}
	return slices.MaxFunc(at, func(a, b listed) int {
		return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(arrived[a.ID], arrived[b.ID]), strings.Compare(a.ID, b.ID))
	}), true
}

func (c *core) remove(cause error) {
	c.removed = true
	v := &View{Cluster: c.cluster, Self: c.me(), Removed: true, Cause: cause}
	if c.view != nil {
		v.Members, v.Hash = c.view.Members, c.view.Hash
	}
	c.view = v
	c.emit(publish{v})
}

// look makes seen what is known now.
func (c *core) look() {
	if c.changed {
		c.seen, c.changed, c.mine = c.build(), false, nil
	}
}

func (c *core) me() Member {
	return Member{ID: c.self.ID, Address: c.address, Incarnation: c.incarnation, Stamp: c.stamp, Roles: c.self.Roles}
}

// show publishes what is seen, if that is news.
func (c *core) show() {
	if c.removed || c.seen == c.view {
		return
	}
	if c.seen.equal(c.view) {
		c.seen = c.view
		return
	}
	c.view = c.seen
	c.emit(publish{c.view})
}

func (c *core) build() *View {
	newest := map[string]Member{} // by address, only stamped ones
	all := []Member{c.me()}
	for _, p := range c.order {
		m := Member{ID: p.ID, Address: p.Address, Incarnation: p.incarnation, Stamp: p.stamp, Roles: p.Roles}
		all = append(all, m)
		if n, ok := newest[m.Address]; m.Stamp != 0 && (!ok || byAge(m, n) > 0) {
			newest[m.Address] = m
		}
	}
	all = slices.DeleteFunc(all, func(m Member) bool {
		n, ok := newest[m.Address]
		return ok && m.Stamp != 0 && byAge(m, n) < 0
	})
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return &View{Cluster: c.cluster, Self: c.me(), Members: all, Hash: hash(all)}
}
