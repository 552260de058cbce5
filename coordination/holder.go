package coordination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Holder describes the holder that a record names. It is meant for people and dashboards, not for
// decisions: it may be out of date by the time it is returned.
type Holder struct {
	Owner string
	// Session is the Session.ID of the holder. It is empty if nobody holds the lease.
	Session string
	Token   Token
	// Remaining is the time until another session can take the lease if the record is not renewed.
	// It is an upper bound, counted from the read of the record. It is 0 if nobody holds the lease.
	Remaining time.Duration
	// Forever reports that the lease does not expire. Remaining then has no meaning.
	Forever bool
}

// Holder reads the record and returns its holder. If nobody holds the lease, Owner is empty and
// Token is the last one known.
func (l *Lease) Holder(ctx context.Context) (Holder, error) {
	rec, _, err := l.read(ctx)
	if err != nil {
		return Holder{}, err
	}
	h := Holder{Owner: rec.Owner, Session: rec.Nonce, Token: rec.Token, Remaining: rec.TTL,
		Forever: rec.Forever}
	over, err := l.sessionOver(ctx, rec)
	if err != nil {
		return Holder{}, err
	}
	if rec.Nonce == "" || over {
		h.Owner, h.Session, h.Remaining, h.Forever = "", "", 0, false
	}
	return h, nil
}

// sessionOver reports whether the session through which the lease is held was given up, or has
// begun a new tenure of its record.
func (l *Lease) sessionOver(ctx context.Context, rec leasestore.Record) (bool, error) {
	if rec.Session == 0 || rec.Nonce == "" {
		return false, nil
	}
	ctx, cancel := l.s.timeout(ctx)
	defer cancel()
	session, ver, err := l.s.load(ctx, leasestore.SessionRecords+rec.Nonce)
	if err != nil {
		return false, fmt.Errorf("lease %q: session of its holder: %w: %w", l.name, ErrUnknown, err)
	}
	switch {
	case ver == "":
		return false, nil
	case session.Nonce == "": // read after the lease, so given up after the lease was claimed
		return session.Token >= rec.Session, nil
	}
	return session.Nonce == rec.Nonce && session.Token > rec.Session, nil
}

func (l *Lease) read(ctx context.Context) (leasestore.Record, leasestore.Version, error) {
	if err := l.check(); err != nil {
		return leasestore.Record{}, "", err
	}
	ctx, cancel := l.s.timeout(ctx)
	defer cancel()
	rec, ver, err := l.s.load(ctx, l.name)
	if err != nil {
		return rec, ver, fmt.Errorf("lease %q: %w: %w", l.name, ErrUnknown, err)
	}
	return rec, ver, nil
}

// renewedEvery is how often renewed reads the store, unless Config.RetryInterval is shorter.
const renewedEvery = time.Second

// renewed waits until the holder of the lease shows that it is alive, and returns it: a record does
// not tell whether its holder lives, a renewal does. renewed returns when a renewal, or a new
// tenure, has followed the first read; or a Holder without a Session when nobody holds the lease.
// It reads the store every second, or every Config.RetryInterval if that is shorter, and goes on
// while the store does not answer.
//
// If ctx ends or the session is closed first, the error matches ErrUnknown: the holder may be alive
// or not. A holder that is alive renews within its Config.RenewInterval, unless the lease is one
// that never expires.
func (l *Lease) renewed(ctx context.Context) (Holder, error) {
	if err := l.check(); err != nil {
		return Holder{}, err
	}
	again := newAlarm(l.s.clock)
	defer again.off()
	every := min(renewedEvery, l.s.cfg.RetryInterval)
	var first []leasestore.Version // nil: not read yet
	for {
		h, seen, err := l.renewal(ctx)
		switch {
		case err == nil && (h.Session == "" || first != nil && !slices.Equal(seen, first)):
			return h, nil
		case err == nil && first == nil:
			first = seen
		}
		again.within(every)
		select {
		case <-again.rings:
			again.off()
		case <-ctx.Done():
			return Holder{}, fmt.Errorf("lease %q: %w: %w", l.name, ErrUnknown, context.Cause(ctx))
		case <-l.s.done:
			return Holder{}, fmt.Errorf("lease %q: %w: %w", l.name, ErrUnknown, ErrClosed)
		}
	}
}

// renewal returns the holder, and the versions of the records that it renews.
func (l *Lease) renewal(ctx context.Context) (h Holder, seen []leasestore.Version, err error) {
	rec, ver, err := l.read(ctx)
	if err != nil {
		return h, nil, err
	}
	seen = []leasestore.Version{ver}
	if rec.Session != 0 && rec.Nonce != "" {
		in, cancel := l.s.timeout(ctx)
		defer cancel()
		_, of, err := l.s.load(in, leasestore.SessionRecords+rec.Nonce)
		if err != nil {
			return h, nil, err
		}
		seen = append(seen, of)
	}
	h, err = l.Holder(ctx)
	return h, seen, err
}

// ForceRelease ends the tenure with the expected token, whichever session holds it. It is for
// operators who know that the holder is dead. A living holder learns of it at its next renewal; a
// holder that renews only its session, or nothing, learns of it at its next read of the record,
// every three TTLs. Until then only fencing rejects its effects. A nil error means that the tenure
// no longer holds the lease. A *HeldError means that another tenure holds it and nothing was
// written.
func (l *Lease) ForceRelease(ctx context.Context, expected Token) error {
	for {
		rec, ver, err := l.read(ctx)
		switch {
		case err != nil:
			return err
		case rec.Nonce == "":
			return nil
		case rec.Token != expected:
			return fmt.Errorf("lease %q: %w", l.name,
				&HeldError{Holder{Owner: rec.Owner, Session: rec.Nonce, Token: rec.Token}})
		}
		if err = l.blank(ctx, ver, rec.Token); !errors.Is(err, leasestore.ErrConflict) {
			return err
		}
	}
}

func (l *Lease) blank(ctx context.Context, ver leasestore.Version, token Token) error {
	ctx, cancel := l.s.timeout(ctx)
	defer cancel()
	_, err := l.s.swap(ctx, l.name, ver, leasestore.Record{Token: token})
	switch statusOf(err) {
	case core.Written:
		return nil
	case core.Conflicted:
		return err
	case core.Refused:
		return fmt.Errorf("lease %q: %w: %w", l.name, ErrStillHeld, err)
	}
	return fmt.Errorf("lease %q: %w: %w", l.name, ErrUnknown, err)
}
