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

// Forget removes a member that has stopped and will not come back from the count of majorities.
// member is its Config.Member or its address. Data that only this member and other stopped members
// held is no longer waited for. No acknowledged write is lost: a majority of the counted members,
// including the forgotten one in the count, must take part, and what they have seen is first
// brought to a majority of the remaining members. Without such a majority nothing changes, and the
// error is a *QuorumError. A forgotten member that comes back enters as a new member, with the data
// it holds.
//
// With Force no other member is asked; see Force.
//
// Errors: ErrInvalid for this member, for a member that is not counted and for one that answers;
// ErrQuorum; ErrUnknown; node.ErrRejoining; ErrClosed.
func (r *Replicator) Forget(ctx context.Context, member string, opts ...ForgetOption) error {
	var o forgetOptions
	for _, opt := range opts {
		opt.applyForget(&o)
	}
	_, err := call[*forgetResponse](ctx, r, struct{}{}, &forgetMember{member, o.force})
	return err
}

// ForgetOption modifies one call of Forget.
type ForgetOption interface{ applyForget(*forgetOptions) }

type forgetOptions struct{ force bool }

// Force is an option of Forget for the case that a majority is lost for good: the member is removed
// from the count at once, and no other member is asked. Use it only for members that have certainly
// stopped. Acknowledged data that only those members held is lost without an error. If they still
// run, or if Force is used on both sides of a partition, there are two clusters that each
// acknowledge writes.
const Force forcing = 1

type forcing int

func (forcing) applyForget(o *forgetOptions) { o.force = true }

// forgetMember is the message of Forget. It is answered with *forgetResponse.
type forgetMember struct {
	member string
	force  bool
}

// forgetResponse answers forgetMember.
type forgetResponse struct{ answer }

// Result returns the error that Forget would have returned.
func (r *forgetResponse) Result() (struct{}, error) { return struct{}{}, r.err }

func (m *forgetMember) run(a *replica, respond func(any)) {
	if m.force {
		a.log.Warn("a member is forgotten by force: data that only it held is lost",
			slog.String("member", m.member))
	}
	a.each(0, func(id uint64, deadline time.Time) core.Event {
		return core.Forget{ID: id, Member: m.member, Force: m.force, Deadline: deadline}
	}, func(_ *domain, _ core.Done, err error) (error, bool) {
		return err, false
	}, func(errs []error) {
		respond(&forgetResponse{answer{m.member, nil, a.forgotten(m.member, errs)}})
	})
}

// forgotten returns the error of a Forget from the errors of the domains. A domain in which the
// member was not counted is ignored if it was counted in another one.
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

// counts reports whether the domain remembers the member.
func (d *domain) counts(member string) bool {
	return slices.ContainsFunc(d.core.QuorumStatus().Members, func(m core.Counted) bool {
		return m.Name == member
	})
}

func (m *forgetMember) refuse(err error, _ *Replicator, respond func(any)) {
	respond(&forgetResponse{answer{m.member, nil, err}})
}
