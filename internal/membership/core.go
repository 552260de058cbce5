package membership

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Listed is a member as a provider lists it.
type listed struct {
	ID, Address string
	Roles       []string // sorted
}

// Events of the core.
type (
	// topology is all that the provider lists now.
	topology struct{ members []listed }
	// tick says that the time asked for with wake has come.
	tick struct{}
	// received is a hello of another member, opened and decoded.
	received struct {
		member string // sender's id
		from   uint64 // its incarnation
		to     uint64 // the incarnation it is for, 0: any
		hello  hello
	}
	// named are addresses that another member lists, sent to members with which it does not agree.
	named struct {
		member    string
		from, to  uint64
		addresses []string
	}
	// leave says that this member is about to leave in order.
	leave struct{}
	// arbiter says whether the arbiter lease is held in this member's fragment.
	arbiter struct{ here bool }
)

// Effects of the core.
type (
	// send asks to send a hello.
	send struct {
		address string
		to      uint64 // incarnation of the receiver, 0 while not known
		hello   hello
	}
	// publish hands out a new view.
	publish struct{ view *View }
	// wake asks for a tick, in place of any asked for before.
	wake struct{ at time.Time }
	// dropped counts a hello that was not taken, and why.
	dropped struct{ why reason }
	// name asks to send addresses that we list.
	name struct {
		address   string
		to        uint64
		addresses []string
	}
	// asked counts a hello to a lost address.
	asked struct{}
	// noted is for counters and the log.
	noted struct {
		what  notice
		other Member
	}
	// divided says who is lost, and with whom we disagree for longer than patience.
	divided struct {
		lost   []string
		others []Member
		since  time.Time // the first of them
	}
)

// notice is something that operators want to know of a split.
type notice int

const (
	evidence    notice = iota // a running member and we do not both list each other
	split                     // that has lasted longer than patience
	agreement                 // now we do, after a split
	permitGiven               // it may give way to us
	permitTaken               // we give way to it
	goodbye                   // it leaves in order
	numberOfNotices
)

type (
	event  any // topology, tick, received, named, leave, arbiter
	effect any // send, publish, wake, dropped, name, asked, noted, divided
)

// hello is the message of proto/membership.proto.
type hello struct {
	address  string
	sequence uint64
	stamp    uint64
	maxStamp uint64
	viewHash uint64
	listsYou bool
	answer   bool

	claim             // of the sender
	droppedYou bool   // the sender once listed the member this is for, and never will again
	yield      bool   // asks for a permit to give way
	permit     uint64 // sequence of the hello that asked: its sender may give way
	declined   uint64 // sequence of the hello that carried a permit: its sender does not give way
	leaving    bool   // the sender leaves in order
}

// settings of the protocol. See defaultSettings for the values and their reasons.
type settings struct {
	stampWait   time.Duration
	settle      time.Duration
	settleFor   time.Duration
	steady      time.Duration
	steadyPer   time.Duration
	idle        time.Duration
	grace       time.Duration
	verdictGap  time.Duration
	verdicts    int
	strangers   int
	maxSkew     time.Duration
	maxMembers  int
	maxRetired  int
	strangerGap time.Duration

	patience, joinPatience                   time.Duration
	retry, roundTrip, permitFor              time.Duration
	contactGap, contactPer, nameGap          time.Duration
	askGap, askOften, askSeldom              time.Duration
	forget, forgetNamed                      time.Duration
	maxLost, maxNamed, maxOthers, maxDropped int
}

func defaultSettings() settings {
	return settings{
		// How long a newcomer waits for the stamps of the members it sees.
		stampWait: 2 * time.Second,
		// How often a peer is greeted that has not said its stamp, and for how long so often:
		// longer than a provider's round, so that a peer that lists us later than we list it is
		// caught.
		settle:    250 * time.Millisecond,
		settleFor: 10 * time.Second,
		// How often it is greeted after that; and how often a peer with which all is well. Either
		// is a base and an addition per member, so that 100 members exchange 830 hellos a second in
		// all. A member that was expelled finds out within 9/8 of idle and two verdicts.
		steady:    2 * time.Second,
		steadyPer: 50 * time.Millisecond,
		idle:      7 * time.Second,
		// How long a peer that never listed us may take to do so before that counts against us.
		grace: 20 * time.Second,
		// How many times in a row a peer must disown us, and how far apart.
		verdicts:   2,
		verdictGap: 500 * time.Millisecond,
		// How many hellos of members not listed are answered per strangerGap.
		strangers:   8,
		strangerGap: time.Second,
		// A stamp further ahead of our clock is refused: it would use up the numbers.
		maxSkew: 366 * 24 * time.Hour,
		// Members listed beyond this are ignored; and how many former incarnations are remembered.
		maxMembers: 10_000,
		maxRetired: 64,
		// How long evidence of a split has to last before anybody gives way, and our own view to be
		// unchanged: if one has dropped the other, and if it may be a join in progress. The latter
		// is above two rounds of every provider.
		patience:     defaultPatience,
		joinPatience: 10 * defaultPatience,
		// How often a permit is asked for, how old a request may be that it answers, and how long
		// its giver stays for a member that does not come back.
		retry:     500 * time.Millisecond,
		roundTrip: 5 * time.Second,
		permitFor: 30 * time.Second,
		// How often a member is greeted with which we do not agree, with an addition for each such
		// member, and how often it is told whom we list.
		contactGap: time.Second,
		contactPer: 20 * time.Millisecond,
		nameGap:    5 * time.Second,
		// How often lost addresses are asked, for how long so often, and how seldom in the end; and
		// when they are forgotten.
		askGap:      2 * time.Second,
		askOften:    2 * time.Minute,
		askSeldom:   time.Minute,
		forget:      24 * time.Hour,
		forgetNamed: 10 * time.Minute,
		// Lost addresses, how many of them may be named by others only, members in conflict, and
		// ids that we remember to have dropped.
		maxLost:    256,
		maxNamed:   128,
		maxOthers:  256,
		maxDropped: 1024,
	}
}

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
	asked     time.Time // the wake asked for

	listedAt    map[string]struct{} // addresses of peers
	viewAt      time.Time           // since when the same members are listed
	lost        []*lostAddress      // in the order in which they were lost, at most maxLost
	others      map[string]*other   // in conflict with us, by id, at most maxOthers
	dropped     []string            // ids that were listed once, oldest first, at most maxDropped
	permits     []permit            // given, at most a quarter of our fragment
	requests    []request           // for a permit, of the last roundTrip
	askedAt     time.Time           // the last of them
	polledAt    time.Time           // when all of our view were asked whether they list us
	mine        *claim              // ours, nil when it has to be found anew
	arbiter     bool                // is held in our fragment
	disowned    bool                // by most of our view, each of them twice
	leaving     bool                // in order
	nameFrom    int                 // whom to name next
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

// step takes one event at a time now, which never goes back, and returns what to do, in order.
func (c *core) step(now time.Time, e event) []effect {
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
	case tick:
		c.asked = time.Time{}
	}
	if !c.up || c.removed {
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
	c.askWake(now)
	return c.effects
}

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

// compare finds out who is listed no more, and who is again.
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
