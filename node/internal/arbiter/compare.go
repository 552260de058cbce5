package arbiter

import "time"

// stores is what a member knows about the lease store that its leader uses.
type stores struct {
	session string    // through which the leader says that it holds Majority; empty: it does not
	same    bool      // that session has been found in this member's store, in this incarnation
	check   claim     // the attempts to find it
	other   time.Time // since when it is not there; zero: it is, or that is not known
	told    bool      // that this member uses another store
}

// follows starts to compare with another leader, or another session.
func (s *stores) follows(session string) {
	if s.session != session {
		s.session, s.other = session, time.Time{}
		s.check.begin()
	}
}

// otherStore reports whether the lease that the leader says it holds is not in the store of this
// member. Both then name different stores, and each could host what the other one hosts: so this
// one does not, from the first answer of its store. If that is still so after two TTLs, in which a
// leader notices that it has lost the lease, this member gives up. A store that does not answer
// tells nothing; nothing can be acquired there either.
func (c *Core) otherStore() bool {
	s := &c.stores
	if s.same || s.session == "" || c.cfg.Session == "" {
		return false
	}
	if c.attempt(&s.check) {
		c.emit(Compare{s.check.op, s.session})
	}
	if s.other.IsZero() {
		return false
	}
	if !s.told && s.check.is(Held) && c.reached(s.other.Add(2*c.cfg.TTL)) {
		s.told = true
		c.emit(Send{c.others(), Verdict{Kind: OtherStore, Members: c.known()}})
		c.emit(Foreign{c.view.Oldest})
	}
	return true
}

func (c *Core) onCompared(e Compared) {
	s := &c.stores
	if e.Op != s.check.op || !s.check.trying {
		return
	}
	c.answered(&s.check, e.Result)
	switch {
	case e.Result == Taken:
		s.same, s.other = true, time.Time{}
	case e.Result == Held && s.other.IsZero():
		s.other = c.now
	}
}

// onOtherStore reports, once, that another member says what otherStore found there.
func (c *Core) onOtherStore(member string) {
	if !c.foreign[member] {
		c.foreign[member] = true
		c.emit(ForeignPeer{member})
	}
}

// otherStoreWhy is for human readers.
const otherStoreWhy = "the lease that the oldest member holds is not in the lease store of this " +
	"member: they name different stores"
