package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Forget takes a member that has stopped, and will not come back, out of the count of majorities: member is its
// Config.Member, or its address. What only that member and others that have stopped held is not waited for any
// more, and nothing acknowledged is lost: a majority of the members counted, the one that is forgotten included,
// must take part, and what they have seen is first brought to a majority of those that stay. Without such a
// majority nothing changes, and the error is a *QuorumError. A member that is forgotten and comes back enters anew,
// with what it holds.
//
// With Force nobody is asked; see there.
//
// Errors: ErrInvalid for this member, for one that is not counted and for one that answers; ErrQuorum; ErrUnknown;
// ErrBetweenLives; ErrClosed.
func (r *Replicator) Forget(ctx context.Context, member string, opts ...ForgetOption) error {
	var o forgetOptions
	for _, opt := range opts {
		opt.applyForget(&o)
	}
	_, err := call[*ForgetResponse](ctx, r, struct{}{}, &ForgetMember{Member: member, Force: o.force})
	return err
}

// ForgetOption refines a call of Forget.
type ForgetOption interface{ applyForget(*forgetOptions) }

type forgetOptions struct{ force bool }

// Force is an option of Forget for when a majority is lost for good: the member is taken out of the count at once,
// and nobody else is asked. Use it only for members that have certainly stopped. What was acknowledged and only they
// held is lost without an error; and if they still run, or it is used on both sides of a partition, there are two
// clusters that each acknowledge.
const Force forcing = 1

type forcing int

func (forcing) applyForget(o *forgetOptions) { o.force = true }

// ForgetMember is Forget for actors: see Update. It is answered with *ForgetResponse.
type ForgetMember struct {
	Member  string
	Force   bool
	Timeout time.Duration // 0: Config.OperationTimeout
	Echo    any
	Adapt   func(*ForgetResponse) any
}

// ForgetResponse answers ForgetMember.
type ForgetResponse struct{ answer }

// Result is what Forget would have returned.
func (r *ForgetResponse) Result() (struct{}, error) { return struct{}{}, r.err }

func (m *ForgetMember) run(a *replica, respond func(any)) {
	if m.Force {
		a.log.Warn("a member is forgotten by force: what only it held is lost", slog.String("member", m.Member))
	}
	a.each(m.Timeout, func(id uint64, deadline time.Time) core.Event {
		return core.Forget{ID: id, Member: m.Member, Force: m.Force, Deadline: deadline}
	}, func(_ *domain, _ core.Done, err error) (error, bool) {
		return err, false
	}, func(errs []error) {
		adapted(a.l.r, &ForgetResponse{answer{m.Member, m.Echo, a.forgotten(m.Member, errs)}}, m.Adapt, respond)
	})
}

// forgotten returns the error of a Forget from those of the domains: one in which the member was not counted has
// nothing to forget, if another had.
func (a *replica) forgotten(member string, errs []error) error {
	var done bool
	var why, absent error
	for i, d := range a.domains {
		switch {
		case errs[i] == nil:
			done = true
		case errors.Is(errs[i], ErrInvalid) && !d.counts(member):
			absent = errs[i]
		default:
			why = cmp.Or(why, errs[i])
		}
	}
	if why == nil && !done {
		why = absent
	}
	return why
}

// counts reports whether a member is remembered.
func (d *domain) counts(member string) bool {
	return slices.ContainsFunc(d.core.Rollcall().Members, func(m core.Counted) bool { return m.Name == member })
}

func (m *ForgetMember) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, &ForgetResponse{answer{m.Member, m.Echo, err}}, m.Adapt, respond)
}
