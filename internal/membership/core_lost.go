package membership

import (
	"cmp"
	"slices"
	"time"
)

// lostAddress is an address of a member that we do not list but that may run in our cluster.
// Members send nothing to members they do not list, so both sides of a split would stay silent
// forever. Lost addresses are therefore sent hellos.
type lostAddress struct {
	address string
	pledge  string    // of the last member that we listed there; "" of none
	named   bool      // only by another member: we have never listed a member there
	since   time.Time // when it was lost or last heard from
	next    time.Time // time of the next hello
	gap     time.Duration
	told    time.Time // when it was last answered
}

// lostAddresses are the lost addresses, in the order in which they were lost, at most maxLost.
type lostAddresses struct {
	settings
	all     []*lostAddress
	changed bool // since the last report
}

// add records the address of a member that is no longer listed, or that another member has named.
func (x *lostAddresses) add(now time.Time, address, pledge string, named bool) {
	if l := x.at(address); l != nil {
		l.pledge = cmp.Or(pledge, l.pledge)
		if !named && l.named {
			l.named, l.since, l.gap, x.changed = false, now, x.askGap, true
		}
		return
	}
	if named && x.countNamed() >= x.maxNamed || len(x.all) >= x.maxLost && !x.makeRoom(named) {
		return
	}
	first := x.askGap
	if named {
		first = 0
	}
	x.all = append(x.all, &lostAddress{address: address, pledge: pledge, named: named, since: now,
		next: now.Add(first), gap: x.askGap})
	x.changed = true
}

// makeRoom removes a named address or, unless the new one is only named, the one lost first.
func (x *lostAddresses) makeRoom(named bool) bool {
	i := slices.IndexFunc(x.all, func(l *lostAddress) bool { return l.named })
	if i < 0 && named {
		return false
	}
	x.all = slices.Delete(x.all, max(i, 0), max(i, 0)+1)
	return true
}

func (x *lostAddresses) countNamed() (n int) {
	for _, l := range x.all {
		if l.named {
			n++
		}
	}
	return n
}

func (x *lostAddresses) at(address string) *lostAddress {
	for _, l := range x.all {
		if l.address == address {
			return l
		}
	}
	return nil
}

// remove removes the addresses for which f returns true.
func (x *lostAddresses) remove(f func(*lostAddress) bool) {
	n := len(x.all)
	x.all = slices.DeleteFunc(x.all, f)
	x.changed = x.changed || len(x.all) != n
}

// expire removes the addresses from which nothing has been heard for long.
func (x *lostAddresses) expire(now time.Time) {
	x.remove(func(l *lostAddress) bool {
		if l.named {
			return now.Sub(l.since) > x.forgetNamed
		}
		return now.Sub(l.since) > x.forget
	})
}

// revive resets the interval of hellos to an address that was heard from; the next one is due at
// soon at the latest.
func (x *lostAddresses) revive(now time.Time, address string, soon time.Time) {
	if l := x.at(address); l != nil {
		l.since, l.gap = now, x.askGap
		if soon.Before(l.next) {
			l.next = soon
		}
	}
}

// later puts off the next hello to an address that did not answer the last one.
func (x *lostAddresses) later(now time.Time, l *lostAddress) {
	if now.Sub(l.since) >= x.askOften {
		l.gap = min(2*l.gap, x.askSeldom)
	}
	l.next = now.Add(max(l.gap, time.Duration(len(x.all))*x.lostGap))
}

// members returns the addresses of lost members, without those that were only named.
func (x *lostAddresses) members() (out []string) {
	for _, l := range x.all {
		if !l.named {
			out = append(out, l.address)
		}
	}
	slices.Sort(out)
	return out
}

// askLost sends the due hellos to lost addresses.
func (c *core) askLost(now time.Time) {
	c.lost.expire(now)
	for _, l := range c.lost.all {
		if l.next.After(now) {
			continue
		}
		o := c.conflicts.at(l.address)
		if o != nil {
			l.next = now.Add(c.conflicts.contact())
			c.contactOther(now, o)
			continue
		}
		c.lost.later(now, l)
		c.sequence++
		c.emit(asked{})
		c.emit(send{l.address, 0, c.compose(l.address, "", false, true)})
	}
}

// onNamed records addresses listed by a member in conflict with us. In this way members that joined
// its side of a split are found.
func (c *core) onNamed(now time.Time, n named) {
	o, known := c.conflicts.by[n.member]
	if !c.up || !known || o.incarnation != n.from || n.to != c.incarnation ||
		!c.familiar(o.address, o.hello.proof) {
		c.emit(dropped{whyStranger})
		return
	}
	for _, a := range n.addresses[:min(len(n.addresses), maxNames)] {
		if a != "" && a != c.address && !c.roster.lists(a) {
			c.lost.add(now, a, "", true)
		}
	}
}
