package distributeddata

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// drain asks the actor to see to it that another replica has what was done here; drained answers.
type drain struct{}

type drained struct{ err error }

func (m *drain) run(a *replica, respond func(any)) {
	if a.view != nil && a.view.Removed {
		respond(&drained{a.removedErr()})
		return
	}
	a.drains = append(a.drains, respond)
	a.start(0, "", false, func(id uint64, deadline time.Time) core.Event {
		return core.Drain{ID: id, Leave: !a.l.r.goesOn(), Deadline: deadline}
	}, func(d core.Done, err error) {
		if d.Short != nil && d.Short.Handed {
			a.log.Warn("this member stops, but the others have not agreed in time to count without it; they will after ForgetAfter, or when Forget is called",
				slog.String("member", a.l.member()), slog.Duration("forget-after", a.l.cfg.ForgetAfter), slog.Any("error", err))
			err = nil
		}
		if d.Short != nil && a.l.r.goesOn() { // what it holds goes along
			err = nil
		}
		if a.drains != nil { // else they were answered
			respond(&drained{a.lossErr(err)})
		}
	})
}

func (m *drain) refuse(err error, _ *Replicator, respond func(any)) { respond(&drained{err}) }

// stopDraining answers the drains under way: this member was removed, and nobody listens to it.
func (a *replica) stopDraining() {
	for _, respond := range a.drains {
		respond(&drained{a.removedErr()})
	}
	a.drains = nil
}

// removedErr is the error of closing at a member that was removed: none if what it holds goes on in another life.
func (a *replica) removedErr() error {
	if a.l.r.goesOn() || a.core.Uncopied() == 0 {
		return nil
	}
	return a.lossErr(fmt.Errorf("%w: %w", ErrQuorum, a.view.Cause))
}

// keysNamed is how many keys an error names.
const keysNamed = 8

// lossErr adds to why which updates may be lost.
func (a *replica) lossErr(why error) error {
	n := a.core.Uncopied()
	if why == nil || n == 0 {
		return why
	}
	return fmt.Errorf("no other replica is known to have %d of the updates made here (keys %q), they may be lost: %w",
		n, a.core.UncopiedKeys(keysNamed), why)
}
