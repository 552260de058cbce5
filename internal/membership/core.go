package membership

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// peer is a listed member other than this one.
type peer struct {
	listed
	incarnation uint64    // 0 until its first hello
	stamp       uint64    // 0 while not known
	sequence    uint64    // of its last hello in this incarnation
	since       time.Time // since when it has been listed, or known in this incarnation
	heard       time.Time // last hello in this incarnation; zero: none
	next        time.Time // when to send it a hello
	listedUs    bool      // it has reported that it lists us, in this incarnation
	left        bool      // it has reported that it leaves gracefully
	speaks      bool      // it supports permits
	poll        bool      // ask it to answer the next hello
	agreed      time.Time // last hello in which it reported that it lists us
	pledge      string    // the first that it gave
	against     int       // consecutive hellos that report that it does not list us
	againstAt   time.Time
}

// retired is an incarnation that was replaced by another one with the same id.
type retired struct {
	id          string
	incarnation uint64
}

// core is the membership protocol as a state machine: no clock, no goroutine, no randomness, and no
// dependence on the order of maps. Only one goroutine may call Step.
//
//	joining ──own address listed──▶ up, stamp 0 ──all answered, or time──▶ up, stamped
//	                                   └──── dropped, or in conflict and permitted ────┴──▶ removed (final)
type core struct {
	settings
	cluster     string
	address     string // ours
	systemID    string // a hint as to which id is ours if several are listed at our address
	incarnation uint64
	key         []byte // of our process: for the proofs

	self    listed
	arrived map[string]int // ids listed at our address, by the number of the first event
	early   []listed       // before up: those listed last
	event   int            // number of the next topology event
	up      bool
	upAt    time.Time
	// waitSince is when the wait for the stamps of others began.
	waitSince time.Time
	told      bool // our stamp has been sent to another member
	removed   bool
	stamp     uint64
	maxStamp  uint64 // largest known stamp, ours included
	sequence  uint64 // of our last hello
	peers     map[string]*peer
	order     []*peer   // the values of peers, by id
	former    []retired // oldest first, at most maxRetired
	view      *View     // the last published
	changed   bool      // the input of the view has changed since seen
	seen      *View     // the current view, possibly unpublished
	wake      time.Time // time of the requested wake; zero: none

	listedAt    map[string]struct{} // addresses of peers
	viewAt      time.Time           // since when the view has had the same members
	surprisedAt time.Time           // the same, without members that came back with our permit
	lost        []*lostAddress      // in the order in which they were lost, at most maxLost
	others      map[string]*other   // in conflict with us, by id, at most maxOthers
	dropped     []string            // ids that were once listed, oldest first, at most maxDropped
	permits     []permit            // given: see most
	strangerAt  time.Time           // when a permit was given to a stranger
	requests    []request           // requests for a permit within the last roundTrip
	askedAt     time.Time           // time of the last request
	polledAt    time.Time           // when all of our view were last asked whether they list us
	mine        *claim              // ours; nil if it must be computed again
	arbiter     bool                // the arbiter lease is held in our fragment
	disowned    bool                // by most of our view, each of them twice
	leaving     bool                // gracefully
	nameFrom    int                 // index of the next member to name
	split       []Member            // last reported
	lostChanged bool                // since the last report

	now         time.Time // time of the current event
	strangersAt time.Time // start of the current strangerGap
	strangersIn int       // number of strangers answered in the current gap
	effects     []effect
}

func newCore(s settings, cluster, address, systemID string, incarnation uint64, key []byte) *core {
	return &core{
		settings: s, cluster: cluster, address: address, systemID: systemID,
		incarnation: incarnation, key: key, peers: map[string]*peer{}, others: map[string]*other{},
	}
}

// Step processes one event at time now, which never decreases, and returns the effects in order.
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

// NextWake returns when the core wants a wake, or zero if it wants none.
func (c *core) NextWake() time.Time { return c.wake }

func (c *core) emit(e effect) { c.effects = append(c.effects, e) }

// onTopology replaces the listed members.
func (c *core) onTopology(now time.Time, members []listed) {
	self, ok := c.findSelf(members)
	if !ok {
		if c.up {
			c.remove(ErrDropped)
			return
		}
		c.beforeUp(now, members)
		return
	}
	c.self, c.changed = self, true
	if !c.up {
		c.beforeUp(now, members)
		c.early = nil
		c.up, c.upAt, c.waitSince = true, now, now
	}
	still := make(map[string]*peer, len(members))
	c.listedAt = make(map[string]struct{}, len(members))
	for _, m := range members {
		if m.ID == self.ID || m.Address == c.address || len(still) == c.maxMembers {
			continue // a former process at our address is certainly gone
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
	c.order = slices.SortedFunc(maps.Values(still), func(a, b *peer) int {
		return strings.Compare(a.ID, b.ID)
	})
	if len(still) > 0 && c.mayWithdraw(now) {
		c.stamp, c.waitSince = 0, now
	}
}

// beforeUp records members that the provider drops before it lists us: Proto.Actor never lists them
// here again, and nobody else can know that.
func (c *core) beforeUp(now time.Time, members []listed) {
	ids, addresses := map[string]bool{}, map[string]bool{c.address: true}
	for _, m := range members {
		ids[m.ID], addresses[m.Address] = true, true
	}
	for _, m := range c.early {
		if !ids[m.ID] {
			c.drop(m.ID)
			if !addresses[m.Address] {
				c.lose(now, m.Address, "", false)
			}
		}
	}
	c.early = members
}

// compare finds members that are no longer listed, and members that are listed again.
func (c *core) compare(now time.Time, still map[string]*peer) {
	changed := c.viewAt.IsZero()
	surprise := changed
	for id, p := range still {
		if c.peers[id] == nil {
			changed, surprise = true, surprise || !c.awaits(p.Address)
		}
	}
	for _, p := range c.order {
		if still[p.ID] != nil {
			continue
		}
		c.mine = nil
		if !p.left { // otherwise it has not been counted any more
			changed, surprise = true, true
		}
		c.drop(p.ID)
		if !p.left && !c.lists(p.Address) {
			c.lose(now, p.Address, p.pledge, false)
		}
	}
	c.found(func(l *lostAddress) bool { return c.lists(l.address) })
	if changed {
		c.viewAt, c.mine = now, nil
	}
	if surprise {
		c.surprisedAt = now
	}
}

// findSelf returns the member at our address. If several are listed there, one is ours and the
// others are former processes that the provider has not dropped yet. Ours is the one whose id
// equals the id of our system, as with most providers; otherwise the one listed last.
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
		return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(arrived[a.ID], arrived[b.ID]),
			strings.Compare(a.ID, b.ID))
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

// look updates seen to what is known now.
func (c *core) look() {
	if c.changed {
		c.seen, c.changed, c.mine = c.build(), false, nil
	}
}

func (c *core) me() Member {
	return Member{ID: c.self.ID, Address: c.address, Incarnation: c.incarnation, Stamp: c.stamp,
		AppVersion: c.self.AppVersion, Roles: c.self.Roles}
}

// show publishes seen if it has changed.
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
		m := Member{ID: p.ID, Address: p.Address, Incarnation: p.incarnation, Stamp: p.stamp,
			AppVersion: p.AppVersion, Roles: p.Roles}
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
