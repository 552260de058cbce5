package coordination

import (
	"context"
	"log/slog"
	"slices"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

func keepsSessions(s Store) bool {
	k, ok := s.(leasestore.SessionKeeper)
	return ok && k.KeepsSessions()
}

// Shared reports whether leases need no renewals of their own: because the store is a
// leasestore.SessionKeeper and one renewal serves the whole session, or because Config.Forever is
// set.
func (s *Session) Shared() bool { return s.shared || s.cfg.Forever }

// newKeeper makes the driver of the session's own record.
func (l *loop) newKeeper() {
	cfg := l.s.cfg.core(l.s.nonce)
	cfg.Keeper, cfg.Forever, cfg.Fair = true, false, false
	own := &Lease{s: l.s, name: leasestore.SessionRecords + l.s.nonce}
	l.own = core.New(cfg)
	l.keeper = newDriver(own, l.own)
	own.driver, l.keeper.loop = l.keeper, l
	l.keeper.told = func(ev core.Event) {
		l.back, l.telling, l.named = ev, true, 0
		for _, d := range l.leases {
			d.step(ev)
		}
		l.telling = false
	}
}

// keep holds the session record while there are leases. After Close it gives the record up when the
// last lease has ended, or when the time for that has passed.
func (l *loop) keep() {
	switch k := l.keeper; {
	case k == nil:
	case !l.closing.begun:
		if len(l.leases) > 0 && !l.own.Wanted() {
			k.step(core.Acquire{Wait: true})
		}
	case !l.closing.keeper && !l.left() && (l.quiet() || l.overdue(releaseOperations)):
		l.dismiss()
	}
}

func (l *loop) quiet() bool {
	return !slices.ContainsFunc(l.leases, func(d *driver) bool { return !d.machine.Quiet() })
}

// discard removes the session record if the record is blank and the store is a Remover.
func (l *loop) discard() {
	if l.keeper == nil {
		return
	}
	version, blank := l.own.Blank()
	if !blank {
		return
	}
	removed := make(chan struct{})
	l.s.work.Go(func() {
		defer close(removed)
		l.s.remove(l.keeper.lease.name, version)
	})
	select {
	case <-removed:
	case <-l.s.hurry:
	}
}

// remove deletes a session record if the store is a Remover. A record that stays behind does no
// harm.
func (s *Session) remove(name string, version leasestore.Version) {
	r, able := s.store.(leasestore.Remover)
	if !able {
		return
	}
	ctx, cancel := s.timeout(s.calls)
	defer cancel()
	defer func() { _ = recover() }() // of the store
	if err := r.Remove(ctx, name, version); err != nil {
		s.cfg.Logger.Debug("session record not removed", slog.String("record", name),
			slog.Any("error", err))
	}
}

// loadSession reads the record of another session.
func (d *driver) loadSession(e core.LoadSession) {
	d.callWithin(d.within(e.Patient), func(ctx context.Context) core.Event {
		rec, ver, err := d.lease.s.load(ctx, leasestore.SessionRecords+e.Nonce)
		return core.SessionLoaded{Op: e.Op, Record: rec,
			Version: ver, Err: err}
	}, func(err error) core.Event { return core.SessionLoaded{Op: e.Op, Err: err} })
}

// endedTTLs is the time, in TTLs, for which the record of an ended session can still be read by
// contenders for its other leases. A contender that comes later finds no record and waits for the
// TTL.
const endedTTLs = 3

// endSession ends a tenure of another session, and removes its record some time later, since a
// crashed session cannot.
func (d *driver) endSession(e core.EndSession) {
	s, name := d.lease.s, leasestore.SessionRecords+e.Nonce
	d.call(func(ctx context.Context) core.Event {
		version, err := s.swap(ctx, name, e.Old, e.Next)
		if err == nil {
			s.work.Go(func() { s.removeLater(name, version) })
		}
		return core.SessionEnded{Op: e.Op, Status: statusOf(err), Version: version, Err: err}
	}, func(err error) core.Event { return core.SessionEnded{Op: e.Op, Err: err} })
}

func (s *Session) removeLater(name string, version leasestore.Version) {
	later := newAlarm(s.clock)
	defer later.off()
	later.within(endedTTLs * s.cfg.TTL)
	select {
	case <-s.calls.Done():
	case <-later.rings:
		s.remove(name, version)
	}
}
