package membership

import (
	"slices"
	"strings"
	"time"
)

// core is the membership protocol as a state machine: no clock, no goroutine, no randomness, and no
// dependence on the order of maps. Only one goroutine may call Step.
//
//	joining ──own address listed──▶ up, stamp 0 ──all answered, or time──▶ up, stamped
//	                                   └──── dropped, or in conflict and permitted ────┴──▶ removed (final)
type core struct {
	settings
	identity

	self      listed
	early     []listed // before up: those listed last
	up        bool
	upAt      time.Time
	waitSince time.Time // when the wait for the stamps of others began
	told      bool      // our stamp has been sent to another member
	removed   bool
	stamp     uint64
	maxStamp  uint64 // largest known stamp, ours included
	sequence  uint64 // of our last hello
	roster    roster
	view      *View     // the last published
	changed   bool      // the input of the view has changed since seen
	seen      *View     // the current view, possibly unpublished
	wake      time.Time // time of the requested wake; zero: none

	viewAt       time.Time // since when the view has had the same members
	surprisedAt  time.Time // the same, without members that came back with our permit
	lost         lostAddresses
	conflicts    conflicts
	permits      permits
	strangerRate strangerRate
	mine         *claim // ours; nil if it must be computed again
	arbiter      bool   // the arbiter lease is held in our fragment
	disowned     bool   // by most of our view, each of them twice
	leaving      bool   // gracefully

	now     time.Time // time of the current event
	effects []effect
}

func newCore(s settings, cluster, address, systemID string, incarnation uint64, key []byte) *core {
	return &core{
		settings: s,
		identity: identity{cluster: cluster, address: address, systemID: systemID,
			incarnation: incarnation, key: key},
		roster:       roster{most: s.maxRetired},
		lost:         lostAddresses{settings: s},
		conflicts:    newConflicts(s),
		permits:      permits{settings: s},
		strangerRate: strangerRate{settings: s},
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
	if c.conflicts.expire(now) {
		c.mine = nil
	}
	c.fulfil(now)
	c.chooseStamp(now)
	c.look()
	c.greet(now)
	c.askLost(now)
	c.countDisowners()
	c.stepDown(now)
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
	self, ok := c.find(members)
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
	c.roster.addresses = make(map[string]struct{}, len(members))
	for _, m := range members {
		if m.ID == self.ID || m.Address == c.address || len(still) == c.maxMembers {
			continue // a former process at our address is certainly gone
		}
		p := c.roster.peers[m.ID]
		if p == nil || p.Address != m.Address {
			p = &peer{since: now, next: now}
		}
		p.listed = m
		still[m.ID] = p
		c.roster.addresses[m.Address] = struct{}{}
	}
	c.compare(now, still)
	c.roster.replace(still)
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
			c.conflicts.drop(m.ID)
			if !addresses[m.Address] {
				c.lost.add(now, m.Address, "", false)
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
		if c.roster.peers[id] == nil {
			changed, surprise = true, surprise || !c.permits.awaits(p.Address)
		}
	}
	for _, p := range c.roster.order {
		if still[p.ID] != nil {
			continue
		}
		c.mine = nil
		if !p.left { // otherwise it has not been counted any more
			changed, surprise = true, true
		}
		c.conflicts.drop(p.ID)
		switch {
		case p.left:
		case c.roster.lists(p.Address):
			c.emit(replaced{p.Address})
		default:
			c.lost.add(now, p.Address, p.pledge, false)
		}
	}
	c.lost.remove(func(l *lostAddress) bool {
		back := c.roster.lists(l.address)
		if back && !l.named {
			c.emit(replaced{l.address})
		}
		return back
	})
	if changed {
		c.viewAt, c.mine = now, nil
	}
	if surprise {
		c.surprisedAt = now
	}
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
	for _, p := range c.roster.order {
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
