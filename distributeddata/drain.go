package distributeddata

import (
	"cmp"
	"fmt"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// drain asks the actor to hand over the updates made here to other replicas; drained is its
// response.
type drain struct{}

type drained struct{ err error }

func (m *drain) run(a *replica, respond func(any)) {
	if a.view != nil && a.view.Removed {
		respond(&drained{a.removedErr()})
		return
	}
	a.drains = append(a.drains, respond)
	a.each(0, func(id uint64, deadline time.Time) core.Event {
		return core.Drain{ID: id, Leave: !a.l.r.goesOn(), Deadline: deadline}
	}, func(d *domain, end core.Done, err error) (error, bool) {
		if all := a.l.r.durableKeys.all(); all && !d.durable {
			return nil, false // no key is volatile
		} else if err = d.drained(end, err); all {
			return err, true
		}
		return err, err != nil && len(a.address) == 0 // no other member to wait for
	}, func(errs []error) {
		if a.drains != nil { // otherwise they have been answered
			respond(&drained{a.lossErr(cmp.Or(errs...))})
		}
	})
}

// drained returns why a domain may have lost data, or nil.
func (d *domain) drained(end core.Done, err error) error {
	l := d.a.l
	switch {
	case err == ErrLoading: //nolint:errorlint // never wrapped; nothing has changed since the start
		return nil
	case end.Store != nil && len(d.a.address) > 0 && d.a.uncopied() == 0:
		return nil // the others have what its disk lacks
	case end.Short == nil:
		return err
	case l.r.goesOn(): // the next incarnation continues with its state
		return nil
	case end.Short.AllLeave: // members that stop together; those that start again know each other
		return nil
	case !d.core.Ready() && d.a.uncopied() == 0: // it leaves the others as it has found them
		return nil
	case end.Short.Handed:
		return fmt.Errorf("the others have what this member, %q, held, but have not agreed in time to stop counting it; they do so after ForgetAfter, %v, or when Forget is called: %w",
			l.member(), l.cfg.ForgetAfter, err)
	}
	return err
}

func (m *drain) refuse(err error, _ *Replicator, respond func(any)) { respond(&drained{err}) }

// stopDraining answers the pending drains: this member was removed, and no other member listens to
// it.
func (a *replica) stopDraining() {
	for _, respond := range a.drains {
		respond(&drained{a.removedErr()})
	}
	a.drains = nil
}

// removedErr returns the error of closing at a member that was removed. It is nil if the process
// continues with its state in another incarnation.
func (a *replica) removedErr() error {
	if a.l.r.goesOn() || a.uncopied() == 0 {
		return nil
	}
	return a.lossErr(fmt.Errorf("%w: %w", ErrQuorum, a.view.Cause))
}

// keysNamed is the maximum number of keys that an error names.
const keysNamed = 8

// lossErr wraps why with the updates that may be lost.
func (a *replica) lossErr(why error) error {
	n := a.uncopied()
	if why == nil || n == 0 {
		return why
	}
	return loss(n, a.uncopiedKeys(), why)
}

// loss wraps why with n updates that may be lost. No key is known of those that only removed
// something once the log has been cut.
func loss(n uint64, keys []string, why error) error {
	of := ""
	if len(keys) > 0 {
		of = fmt.Sprintf(" (keys %q)", keys)
	}
	return fmt.Errorf("%d of the updates made here%s are not known to be on any other replica and may be lost: %w",
		n, of, why)
}

// uncopied returns the number of updates that no other replica is known to have.
func (a *replica) uncopied() (n uint64) {
	for _, d := range a.domains {
		d.alone(func() { n += d.core.Uncopied() })
	}
	return n
}

// uncopiedKeys returns some of the keys that these updates changed.
func (a *replica) uncopiedKeys() (keys []string) {
	for _, d := range a.domains {
		d.alone(func() { keys = append(keys, d.core.UncopiedKeys(keysNamed-len(keys))...) })
	}
	return keys
}
