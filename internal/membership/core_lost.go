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

// lose records the address of a member that is no longer listed, or that another member has named.
func (c *core) lose(now time.Time, address, pledge string, named bool) {
	if l := c.lostAt(address); l != nil {
		l.pledge = cmp.Or(pledge, l.pledge)
		if !named && l.named {
			l.named, l.since, l.gap, c.lostChanged = false, now, c.askGap, true
		}
		return
	}
	if named && c.countNamed() >= c.maxNamed || len(c.lost) >= c.maxLost && !c.makeRoom(named) {
		return
	}
	first := c.askGap
	if named {
		first = 0
	}
	c.lost = append(c.lost, &lostAddress{address: address, pledge: pledge, named: named, since: now,
		next: now.Add(first), gap: c.askGap})
	c.lostChanged = true
}

// makeRoom removes a named address or, unless the new one is only named, the one lost first.
func (c *core) makeRoom(named bool) bool {
	i := slices.IndexFunc(c.lost, func(l *lostAddress) bool { return l.named })
	if i < 0 && named {
		return false
	}
	c.lost = slices.Delete(c.lost, max(i, 0), max(i, 0)+1)
	return true
}

func (c *core) countNamed() (n int) {
	for _, l := range c.lost {
		if l.named {
			n++
		}
	}
	return n
}

func (c *core) lostAt(address string) *lostAddress {
	for _, l := range c.lost {
		if l.address == address {
			return l
		}
	}
	return nil
}

// found removes lost addresses for which f returns true.
func (c *core) found(f func(*lostAddress) bool) {
	n := len(c.lost)
	c.lost = slices.DeleteFunc(c.lost, f)
	c.lostChanged = c.lostChanged || len(c.lost) != n
}

// revive resets the interval of hellos to an address that was heard from.
func (c *core) revive(now time.Time, address string) {
	if l := c.lostAt(address); l != nil {
		l.since, l.gap = now, c.askGap
		if soon := now.Add(c.contact()); soon.Before(l.next) {
			l.next = soon
		}
	}
}

// askLost sends the due hellos to lost addresses.
func (c *core) askLost(now time.Time) {
	if len(c.lost) == 0 {
		return
	}
	c.found(func(l *lostAddress) bool {
		if l.named {
			return now.Sub(l.since) > c.forgetNamed
		}
		return now.Sub(l.since) > c.forget
	})
	for _, l := range c.lost {
		if l.next.After(now) {
			continue
		}
		o := c.otherAt(l.address)
		if o != nil {
			l.next = now.Add(c.contact())
			c.contactOther(now, o)
			continue
		}
		if now.Sub(l.since) >= c.askOften {
			l.gap = min(2*l.gap, c.askSeldom)
		}
		l.next = now.Add(max(l.gap, time.Duration(len(c.lost))*c.lostGap))
		c.sequence++
		c.emit(asked{})
		c.emit(send{l.address, 0, c.compose(l.address, "", false, true)})
	}
}

// lostMembers returns the addresses of lost members, without those that were only named.
func (c *core) lostMembers() (out []string) {
	for _, l := range c.lost {
		if !l.named {
			out = append(out, l.address)
		}
	}
	slices.Sort(out)
	return out
}

// onNamed records addresses listed by a member in conflict with us. In this way members that joined
// its side of a split are found.
func (c *core) onNamed(now time.Time, n named) {
	o, known := c.others[n.member]
	if !c.up || !known || o.incarnation != n.from || n.to != c.incarnation ||
		!c.familiar(o.address, o.hello.proof) {
		c.emit(dropped{whyStranger})
		return
	}
	for _, a := range n.addresses[:min(len(n.addresses), maxNames)] {
		if a != "" && a != c.address && !c.lists(a) {
			c.lose(now, a, "", true)
		}
	}
}

// names returns addresses of our view, at most maxNames; in larger clusters they rotate.
func (c *core) names() (out []string) {
	n := len(c.order)
	for i := range min(n, maxNames) {
		out = append(out, c.order[(c.nameFrom+i)%n].Address)
	}
	if n > maxNames {
		c.nameFrom = (c.nameFrom + maxNames) % n
	}
	return out
}

func (c *core) lists(address string) bool {
	_, ok := c.listedAt[address]
	return ok
}
