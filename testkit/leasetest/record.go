package leasetest

import (
	"errors"
	"time"

	"github.com/concord-go/concord/coordination"
)

// recordChecks check records that were changed by someone other than their session.
var recordChecks = []check{
	{"D6_G6_DeletedRecordIsALoss", func(e *env) {
		e.needs(e.options.Delete != nil, "Delete")
		n := e.node()
		g := n.hold()
		log := losses(g)
		e.must(e.options.Delete(e.store, name))
		e.sleep(ttl + e.learns())
		e.that(len(log.all()) == 1 && log.all()[0].Why == coordination.RecordDeleted, "told %v",
			log.all())
		next, err := n.acquire(time.Hour)
		e.must(err)
		e.that(next.Token() > g.Token(), "token %v after %v", next.Token(), g.Token())
	}},
	{"D6_F1_ADeletedRecordComesBackBlank", func(e *env) {
		e.needs(e.options.Delete != nil, "Delete")
		n := e.node()
		g := n.hold()
		e.must(e.options.Delete(e.store, name))
		e.sleep(e.learns() + 2*ttl) // the holder learns of it, and its work has ended
		e.that(g.Check() != nil, "still held")
		rec, ver, err := e.store.Load(e.Context(), name)
		e.that(err == nil && ver != "" && rec.Nonce == "" && rec.Token >= g.Token(),
			"after tenure %v the store shows %v under version %q, %v", g.Token(), rec, ver, err)
		_, err = e.node().acquire(retry) // a session that has not seen it before
		e.must(err)
	}},
	{"D6_G6_AbsenceIsNotFreedomForWhoWaits", func(e *env) {
		e.needs(e.options.Delete != nil, "Delete")
		a, b := e.node(), e.node()
		g := a.hold()
		_, err := b.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		a.set(fault{cut: true}) // it does not notice the deletion
		e.must(e.options.Delete(e.store, name))
		t := time.Now()
		next, err := b.acquire(time.Hour)
		e.must(err)
		e.that(since(t) >= ttl-op && next.Token() > g.Token(), "token %v after %v", next.Token(),
			since(t))
	}},
	{"G6_DamagedRecordIsUnknown", func(e *env) {
		e.needs(e.options.Damage != nil, "Damage")
		a, b := e.node(), e.node()
		g := a.hold()
		e.must(e.options.Damage(e.store, name))
		_, err := b.try()
		e.that(errors.Is(err, coordination.ErrUnknown) && !errors.Is(err, coordination.ErrHeld),
			"got %v", err)
		_, _, err = e.store.Load(e.Context(), name)
		e.that(err != nil, "loaded a damaged record")
		e.that(g.Check() == nil, "lost at once: %v", g.Check())
		e.sleep(2 * ttl)
		// If the session is renewed for all leases, its record is not damaged.
		e.that(e.shared || g.Check() != nil, "held although it cannot be renewed")
	}},
}

// needsAbility skips a claim if the store does not offer the ability.
func (e *env) needsAbility(offered bool, which string) {
	if !offered {
		e.Skipf("not checked: the store is no %s", which)
	}
}

// needs skips a claim if the ability is not declared in Options.
func (e *env) needs(declared bool, option string) {
	if !declared {
		e.Skipf("not checked: Options.%s is not set", option)
	}
}
