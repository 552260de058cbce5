package distributeddata

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/contain"
)

// Flush waits until the disk of this member has every change of durable keys that this replica
// holds, or until ctx is done. It is needed with Config.WriteBehind only; without it, an Update
// that returns nil is already on the disk. Flush returns nil at once without Config.Durable.
//
// Errors: ErrStore, ErrLoading, ErrUnknown, node.ErrRejoining, ErrClosed, ErrInvalid.
func (r *Replicator) Flush(ctx context.Context) error {
	_, err := call[*flushed](ctx, r, struct{}{}, &flush{})
	return err
}

// flush is the request that Flush sends, and flushed is its response.
type flush struct{}

type flushed struct{ err error }

// Result returns the error.
func (f *flushed) Result() (struct{}, error) { return struct{}{}, f.err }

func (m *flush) run(a *replica, respond func(any)) {
	if a.durable == nil {
		respond(&flushed{})
		return
	}
	a.start(a.durable, 0, "", true, func(id uint64, deadline time.Time) core.Event {
		return core.Flush{ID: id, Deadline: deadline}
	}, func(_ core.Done, err error) { respond(&flushed{err}) })
}

func (m *flush) refuse(err error, _ *Replicator, respond func(any)) { respond(&flushed{err}) }

// aboutKey is implemented by requests about one entry, or about all durable keys. needs reports
// whether the request needs the durable keys, and how long it may take; 0 means the time of the
// call, or Config.OperationTimeout.
type aboutKey interface {
	needs(c *durableKeys) (durable bool, timeout time.Duration)
}

func (m *Get[T]) needs(c *durableKeys) (bool, time.Duration) {
	return c.durable(m.Key.id), m.Timeout
}

func (m *Update[T]) needs(c *durableKeys) (bool, time.Duration) {
	return c.durable(m.Key.id), m.Timeout
}
func (m *Delete[T]) needs(c *durableKeys) (bool, time.Duration) {
	return c.durable(m.Key.id), m.Timeout
}
func (m *flush) needs(c *durableKeys) (bool, time.Duration) { return c != nil, 0 }

// loading reports whether the rows of the domain have not been loaded, which may also never happen.
func (d *domain) loading() bool { return d.core.Disk().Phase == core.DiskLoading }

// maxAwaiting is the number of requests that may wait for the durable rows. Further requests are
// rejected.
const maxAwaiting = 1024

// awaiting is a request that waits until the durable rows have been loaded.
type awaiting struct {
	request
	asker    asker
	deadline time.Time // zero: no caller waits, so the request has no deadline
}

// awaits queues a request that needs durable rows which are still being loaded. It reports whether
// it has taken the request, which is then answered later.
func (a *replica) awaits(m request) bool {
	k, ok := m.(aboutKey)
	if a.durable == nil || !ok || !a.durable.loading() {
		return false
	}
	needs, timeout := k.needs(a.l.r.durableKeys)
	if !needs {
		return false
	}
	w := awaiting{request: m, asker: a.asker}
	if w.asker.waits() {
		w.deadline = a.volatile.shell.Now().Add(cmp.Or(max(timeout, 0), a.limit,
			a.l.cfg.OperationTimeout))
	}
	switch {
	case a.unloaded != nil:
		a.refuse(w, a.unloaded)
	case len(a.waiting) >= maxAwaiting:
		a.refuse(w, fmt.Errorf("%w: %d operations wait already", ErrLoading, maxAwaiting))
	default:
		a.waiting = append(a.waiting, w)
		a.rearm()
	}
	return true
}

// rearm sets the timer to the earliest deadline among the waiting requests.
func (a *replica) rearm() {
	var next time.Time
	for _, w := range a.waiting {
		if !w.deadline.IsZero() && (next.IsZero() || w.deadline.Before(next)) {
			next = w.deadline
		}
	}
	if !next.IsZero() {
		a.patience.SetAt(next, nil)
	}
}

// impatient rejects the requests whose deadlines have passed.
func (a *replica) impatient() {
	now, all := a.volatile.shell.Now(), a.waiting
	a.waiting = nil
	for _, w := range all {
		if w.deadline.IsZero() || now.Before(w.deadline) {
			a.waiting = append(a.waiting, w)
			continue
		}
		a.refuse(w, fmt.Errorf("%w: %d rows so far", ErrLoading, a.l.r.disk.rows.Load()))
	}
	a.rearm()
}

func (a *replica) refuse(w awaiting, err error) {
	if !w.asker.waits() {
		a.log.Warn("an update without a waiter was rejected", slog.Any("error", err))
	}
	w.refuse(err, a.l.r, func(res any) { a.respond(w.asker, res) })
}

// onDisk handles an answer of the disk.
func (a *replica) onDisk(m diskAnswer) {
	if m.failed != nil {
		a.unloaded = fmt.Errorf("%w: the rows of the durable keys cannot be used: %w", ErrStore,
			m.failed)
		a.log.Error("the rows of the durable keys cannot be used, and nothing is written: fix the cause and restart",
			slog.Any("error", m.failed), slog.Bool("closes", a.l.cfg.CloseOnStoreFailure))
		if a.l.cfg.CloseOnStoreFailure {
			go a.l.closeFailed()
		}
	} else {
		a.durable.step(m.event)
	}
	if a.unloaded == nil && a.durable.loading() {
		return
	}
	a.publish()
	a.l.r.loops.rouse()
	all := a.waiting
	a.waiting = nil
	for _, w := range all {
		switch {
		case a.unloaded != nil:
			a.refuse(w, a.unloaded)
		default:
			a.ctx.Send(a.ctx.Self(), &resumed{w})
		}
	}
}

// resumed carries a request that has waited for the durable rows.
type resumed struct{ awaiting }

// onResumed carries out a request in its remaining time.
func (a *replica) onResumed(m *resumed) {
	a.asker = m.asker
	if !m.deadline.IsZero() {
		a.limit = max(m.deadline.Sub(a.volatile.shell.Now()), time.Nanosecond)
	}
	a.carryOut(m.request)
}

// openDisk starts loading the rows, unless an earlier incarnation of the process has done so.
func (a *replica) openDisk() {
	k := a.l.r.disk
	if a.durable.loading() && a.unloaded == nil {
		k.load(a.owner())
	}
	system, self := a.l.system, a.ctx.Self()
	k.attach(func(m diskAnswer) { contain.Send(system, self, &m) })
}

// owner identifies the owner of the rows. It does not contain a port.
func (a *replica) owner() string {
	name := ""
	if v := a.l.members.View(); v != nil {
		name = v.Cluster
	}
	return name + "\x00" + a.l.cfg.Name + "\x00" + a.l.cfg.Member
}

// diskIs logs the condition of the disk.
func (d *domain) diskIs(s core.DiskState) {
	switch s.Phase {
	case core.DiskWorking:
		d.log.Info("the disk is working", slog.Bool("refilling", s.Refilling),
			slog.Int("holes", s.Holes))
	case core.DiskFailed:
		d.log.Error("the disk has failed: this member acknowledges no durable change until it is restarted",
			slog.Any("error", s.Err), slog.Bool("closes", d.a.l.cfg.CloseOnStoreFailure))
		if d.a.l.cfg.CloseOnStoreFailure {
			go d.a.l.closeFailed()
		}
	default:
		d.log.Error("durable changes are currently not acknowledged",
			slog.String("disk", s.Phase.String()), slog.Any("error", s.Err),
			slog.String("check", "its space and its speed: this member continues by itself"))
	}
}

// closeFailed closes the replicator of a member whose disk has failed.
func (l *binding) closeFailed() {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.OperationTimeout)
	defer cancel()
	if err := l.r.Close(ctx); err != nil {
		l.system.Logger().Error("replicator not closed after its disk had failed", slog.Any("error", err))
	}
}

// ofDisk returns the error of an operation that failed because of the disk, and nil for any other.
func ofDisk(d core.Done) error {
	switch {
	case d.Store != nil:
		return fmt.Errorf("%w: %w", ErrStore, d.Store)
	case d.Err == core.ErrDiskBusy: //nolint:errorlint // may be the application's
		return fmt.Errorf("%w: %w", ErrLimit, d.Err)
	case d.Err == core.ErrLoading: //nolint:errorlint // as above
		return ErrLoading
	}
	return nil
}
