package coordination

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// machine is a core.Machine or a core.Observer.
type machine interface {
	Step(now core.Reading, ev core.Event) []core.Effect
	Wake() (at time.Duration, ok bool)
	Quiet() bool
}

// driver connects the machine of one lease to the store and the callers. It belongs to the loop.
type driver struct {
	lease   *Lease
	machine machine
	loop    *loop // nil until the loop has taken the driver over, and after it has forgotten it
	index   int   // in the leases of the loop
	wake    time.Duration
	place   int // in wakes; 0: not there
	grant   *Grant
	warned  bool // the lease is near expiry
	replies map[uint64]chan answer
	unwatch context.CancelFunc
	told    func(core.Event) // of the session record: reports its events to the leases; else nil
	looks   int              // calls of observe that have not been stopped
	queued  atomic.Int64     // when the place in the queue was last written, monotonic; 0: never

	failure   error // of the last call of the store; nil after an answer
	dismissed bool  // the lease was not released when the session record was given up
}

func newDriver(l *Lease, m machine) *driver {
	return &driver{lease: l, machine: m, replies: map[uint64]chan answer{}}
}

// take stores the channel that waits for the answer, then steps.
func (d *driver) take(m message) {
	if m.reply != nil {
		switch ev := m.event.(type) {
		case core.Acquire:
			d.replies[ev.ID] = m.reply
		case core.Release:
			d.replies[ev.ID] = m.reply
		}
	}
	d.step(m.event)
}

func (d *driver) step(ev core.Event) {
	switch ev := ev.(type) {
	case core.Loaded:
		d.failure = ev.Err
	case core.Swapped:
		if d.failure = ev.Err; ev.Status == core.Conflicted {
			d.failure = nil
		}
	}
	for _, e := range d.machine.Step(d.lease.s.now(), ev) {
		d.carryOut(e)
	}
	d.loop.wakes.note(d)
}

func (d *driver) carryOut(e core.Effect) {
	defer d.guard(e)
	switch e := e.(type) {
	case core.Load:
		d.load(e)
	case core.Swap:
		d.swap(e)
	case core.Begin:
		d.begin(e)
	case core.Extend:
		d.grant.extend(e.Validity)
		d.near(false)
	case core.Warn:
		d.grant.warn(e.Remaining)
		d.near(true)
	case core.End:
		d.end(e)
	case core.Drained:
		d.grant.drain()
	case core.Answer:
		d.answer(e)
	case core.Watch:
		d.watch(e.On)
	case core.Follow:
		d.loop.follow(e.Nonce, e.On)
	case core.LoadSession:
		d.loadSession(e)
	case core.EndSession:
		d.endSession(e)
	case core.Enqueue:
		d.enqueue(e)
	case core.Leave:
		d.leave(e)
	}
	if d.told == nil {
		return
	}
	if ev, ok := core.Told(e); ok {
		d.told(ev)
	}
}

func (d *driver) begin(e core.Begin) {
	d.grant = newGrant(d.lease, e.Token, e.Validity)
	d.grant.previous = e.Previous
	d.count(func(s *Status) { s.Held++ })
	d.lease.s.cfg.Logger.Debug("lease acquired", slog.String("lease", d.lease.name),
		slog.Uint64("token", uint64(e.Token)))
}

func (d *driver) end(e core.End) {
	end := endingOf(e)
	d.grant.finish(end)
	if e.Why == core.Expired {
		d.lease.s.stand(func(s *stats) { s.expired = true }) // before it is no longer near expiry
	}
	d.near(false)
	d.count(func(s *Status) {
		s.Held--
		if lost, ok := errors.AsType[*LostError](end.err); ok {
			s.Lost[lost.Why]++
		} else {
			s.Released++
		}
	})
	d.logEnd(e)
}

// logEnd logs the end of a tenure. The end of the session record ends all leases of the session:
// that is logged with their number, and then mostNamed of them by name. An outage of the store has
// been logged before leases end.
func (d *driver) logEnd(e core.End) {
	attrs := []slog.Attr{slog.String("lease", d.lease.name)}
	s := d.lease.s
	var held int
	var away bool
	s.stand(func(st *stats) { held, away = st.status.Held, st.away })
	level := slog.LevelWarn
	switch {
	case e.Why == core.Released, e.Why == core.Closed:
		level = slog.LevelDebug
	case e.Why == core.Expired && away:
		level = slog.LevelInfo
	}
	switch l := d.loop; {
	case d.told != nil:
		if held == 0 {
			level = slog.LevelDebug
		}
		attrs = []slog.Attr{slog.String("session", s.nonce), slog.Int("leases", held)}
	case l != nil && l.telling:
		level = min(level, slog.LevelInfo)
		if l.named++; l.named > mostNamed {
			level = slog.LevelDebug
		}
	}
	attrs = append(attrs, slog.Uint64("token", uint64(e.Token)), slog.String("why", e.Why.String()))
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	if d.told != nil {
		s.cfg.Logger.LogAttrs(context.Background(), level, "lease session ended", attrs...)
		return
	}
	s.cfg.Logger.LogAttrs(context.Background(), level, "lease ended", attrs...)
}

// count changes the statistics of leases. The session record is not counted.
func (d *driver) count(change func(*Status)) {
	if d.told == nil {
		d.lease.s.count(change)
	}
}

// near notes whether renewals of the lease are failing.
func (d *driver) near(ongoing bool) {
	if d.warned == ongoing {
		return
	}
	d.warned = ongoing
	if d.told != nil {
		d.lease.s.stand(func(s *stats) { s.near = ongoing })
	}
	d.count(func(s *Status) {
		if ongoing {
			s.NearExpiry++
		} else {
			s.NearExpiry--
		}
	})
}

func (d *driver) answer(a core.Answer) {
	reply, ok := d.replies[a.ID]
	if !ok {
		return
	}
	delete(d.replies, a.ID)
	reply <- answer{a, d.grant}
}

// endingOf converts the end of a tenure to the types of the API.
func endingOf(e core.End) ending {
	switch e.Why {
	case core.Released:
		return ending{ErrReleased, true}
	case core.TakenOver:
		lost := &LostError{Why: TakenOver}
		if e.Holder.Nonce != "" {
			lost.Err = &HeldError{Holder{Owner: e.Holder.Owner, Session: e.Holder.Nonce,
				Token: e.Holder.Token}}
		}
		return ending{lost, true}
	case core.RecordDeleted:
		return ending{&LostError{Why: RecordDeleted}, true}
	case core.Closed:
		return ending{&LostError{Why: Closed, Err: ErrClosed}, false}
	}
	return ending{&LostError{Why: Expired, Err: e.Err}, false}
}

func (d *driver) load(e core.Load) {
	d.callWithin(d.within(e.Patient), func(ctx context.Context) core.Event {
		rec, ver, err := d.lease.s.load(ctx, d.lease.name)
		return core.Loaded{Op: e.Op, Record: rec, Version: ver, Err: err}
	}, func(err error) core.Event { return core.Loaded{Op: e.Op, Err: err} })
}

// swap makes a conditional write. A renewal of the session record has until the end of the tenure
// that it prolongs: the machine sends another one after Config.OperationTimeout, and takes the
// answer that comes first.
func (d *driver) swap(e core.Swap) {
	s := d.lease.s
	within := d.within(e.Patient)
	if d.told != nil && e.Next.Nonce != "" {
		within = s.cfg.TTL
	}
	d.callWithin(within, func(ctx context.Context) core.Event {
		ver, err := s.batched(ctx, leasestore.Swap{Name: d.lease.name,
			Old: e.Old, Next: e.Next})
		return core.Swapped{Op: e.Op, Status: statusOf(err), Version: ver,
			Token: s.given(ver), Err: err}
	}, func(err error) core.Event { return core.Swapped{Op: e.Op, Err: err} })
}

// within returns the time of a call. A patient one has twice the time: its answer is useful also if
// it comes late.
func (d *driver) within(patient bool) time.Duration {
	if patient {
		return 2 * d.lease.s.cfg.OperationTimeout
	}
	return d.lease.s.cfg.OperationTimeout
}

func (d *driver) call(f func(context.Context) core.Event, failed func(error) core.Event) {
	d.callWithin(d.within(false), f, failed)
}

// callWithin runs f outside the loop and posts its event to the loop. A panic of the store becomes
// an error of unknown outcome.
func (d *driver) callWithin(within time.Duration, f func(context.Context) core.Event,
	failed func(error) core.Event) {
	s := d.lease.s
	s.work.Go(func() { // the loop is alive, so Close is not waiting for work yet
		ctx, cancel := s.timeoutAfter(s.calls, within)
		defer cancel()
		s.post(d.lease, guarded(ctx, f, failed), nil)
	})
}

// panicked returns the error for a panic of a store.
func panicked(p any) error { return fmt.Errorf("store panicked: %v", p) }

func guarded(ctx context.Context, f func(context.Context) core.Event,
	failed func(error) core.Event) (ev core.Event) {
	defer func() {
		if p := recover(); p != nil {
			ev = failed(panicked(p))
		}
	}()
	return f(ctx)
}

// watch starts or stops listening for hints. A failed watch is started again after a while; polling
// continues meanwhile.
func (d *driver) watch(on bool) {
	s := d.lease.s
	w, able := s.store.(leasestore.Watcher)
	if !able {
		return
	}
	if !on {
		d.unwatch()
		return
	}
	ctx, cancel := context.WithCancel(s.calls)
	d.unwatch = cancel
	s.work.Go(func() {
		defer cancel()
		for ctx.Err() == nil {
			d.listen(ctx, w)
			if ctx.Err() == nil {
				s.post(d.lease, core.Unwatched{}, nil)
			}
			again := newAlarm(s.clock)
			again.within(s.cfg.RetryInterval)
			select {
			case <-ctx.Done():
			case <-again.rings:
			}
			again.off()
		}
	})
}

func (d *driver) listen(ctx context.Context, w leasestore.Watcher) {
	defer func() { _ = recover() }() // the hint is lost; polling continues
	for rec, err := range w.Watch(ctx, d.lease.name) {
		if err != nil || ctx.Err() != nil {
			return
		}
		d.lease.s.post(d.lease, core.Changed{Record: rec}, nil)
	}
}

// shut answers the remaining callers when the loop stops.
func (d *driver) shut() {
	for id, reply := range d.replies {
		reply <- answer{Answer: core.Answer{ID: id, Outcome: core.Shut}}
	}
	clear(d.replies)
}
