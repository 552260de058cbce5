package distributeddata

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
)

// domain is a set of keys with its own core: a sequence of events, a vector, a log and a count of
// majorities [R1]. A replica has one domain of volatile keys and, with Config.Durable, one of
// durable keys. The domains share the actor, which serves members, subscribers and callers of both.
// Each message between members says which domain it belongs to.
//
// With a single domain, a vector loaded from a disk would also cover keys that are not on the disk,
// and would delete them everywhere.
type domain struct {
	a       *replica
	durable bool
	log     *slog.Logger
	core    *core.Core
	front   *front // of the volatile domain: where callers update it
	shell   *shell.Shell[core.Event, core.Effect]
	held    []*core.Core     // cores of earlier incarnations that have not been merged yet
	view    *membership.View // the last one passed to the core

	convergence convergence
}

// held holds the cores of an incarnation when it ended, in the order of the domains.
type held []*core.Core

func newDomain(a *replica, durable bool) *domain {
	d := &domain{a: a, durable: durable, log: a.log, front: a.l.front}
	if durable {
		d.front = newFront(a.l)
		d.log = a.log.With(slog.String("keys", "durable"))
	}
	d.shell = shell.New(shell.Config[core.Event, core.Effect]{
		Name: a.component(), Core: d, Wake: core.Wake{},
		CarryOut: func(_ actor.Context, e core.Effect) { a.effect(d, e) },
		Failed:   func(_ actor.Context, e core.Effect) { a.failed(d, e) },
		Panics:   &a.l.r.panics,
		Stepped:  d.stepped,
	})
	return d
}

// Step implements shell.Core. Callers make no updates until the state has been published; see
// stepped. If the step does not return, they make none before the next one has.
func (d *domain) Step(now time.Time, ev core.Event) []core.Effect {
	d.front.lock.lock()
	d.front.core = nil
	returned := false
	defer func() {
		if !returned {
			d.front.lock.unlock()
		}
	}()
	effects := d.core.Step(now, ev)
	returned = true
	return effects
}

// stepped publishes the state after a step: before anyone is answered, so that callers read their
// own writes.
func (d *domain) stepped() {
	defer d.front.lock.unlock()
	if !d.core.Gathers() {
		d.front.committed(d.a.publish, d.shell.Now())
	}
	if !d.durable && !d.front.shut {
		d.front.core = d.core
	}
}

// NextWake implements shell.Core.
func (d *domain) NextWake() (at time.Time) {
	if d.core == nil { // begin has panicked
		return at
	}
	d.alone(func() { at = d.core.NextWake() })
	return at
}

// alone calls f while no caller updates the core.
func (d *domain) alone(f func()) {
	d.front.lock.lock()
	defer d.front.lock.unlock()
	f()
}

// begin creates the core of an incarnation, which continues with the state of the previous one.
func (d *domain) begin() {
	d.view = nil
	if len(d.held) == 0 {
		d.core = core.New(d.config())
		return
	}
	d.core = d.held[0].Again(d.config())
	d.held = slices.Delete(d.held, 0, 1) // which lets go of it
}

// catchUp merges the state of earlier incarnations that ended late, and passes the view of the
// members to the core. If a panic interrupts it, the next call continues where it stopped.
func (d *domain) catchUp() {
	for len(d.held) > 0 {
		c := d.held[0]
		d.held = slices.Delete(d.held, 0, 1) // which lets go of it
		d.step(core.Inherit{Old: c})
	}
	if v := d.a.view; v != d.view {
		d.step(core.View{Others: d.others()})
		d.view = v
	}
}

// others returns the other members with a replica of the domain. Members that list other durable
// keys have no replica of the durable domain.
func (d *domain) others() []core.Member {
	all := d.a.otherMembers()
	if d.durable {
		all = slices.DeleteFunc(all, func(m core.Member) bool { return d.a.unlike[m.ID] })
	}
	return all
}

func (d *domain) config() core.Config {
	l := d.a.l
	cfg := l.cfg
	var rows *core.DiskConfig
	if d.durable {
		rows = &core.DiskConfig{Owner: d.a.owner(), Behind: cfg.WriteBehind, Bytes: 16 << 20,
			Events: 10_000, Retry: time.Second}
	}
	var expires uint32
	if !d.durable { // one of the domains is enough
		expires = l.ttls.sum()
	}
	return core.Config{
		Disk: rows, Expiry: expires,
		Member:     l.member(),
		NewReplica: func() causal.Replica { return causal.Replica(rand.Uint64() | 1) },
		Recorded:   cfg.Membership != nil,
		MinMembers: cfg.MinMembers, ForgetAfter: max(cfg.ForgetAfter, 0),
		BeatInterval: cfg.HeartbeatInterval, BeatPeers: 3,
		Grace: cfg.HeartbeatInterval / 5, Patience: 2 * cfg.HeartbeatInterval,
		WindowCount: 1024, WindowBytes: 4 << 20, LogBytes: cfg.LogBytes, PushBytes: 4 << 20,
		PartBytes: 64 << 10, CompareKeys: 64,
		Fits:  func(key string, bytes int) error { return l.within(maxBytes, bytes, key) },
		Reach: l.r.reach,
	}
}

// step passes an event to the core and carries out the effects.
func (d *domain) step(ev core.Event) {
	if !d.a.stopped {
		d.shell.Step(d.a.ctx, ev)
	}
}

// settle publishes the changes that open events gather.
func (d *domain) settle() {
	open := false
	if d.alone(func() { open = d.core.Gathers() }); open {
		d.step(core.End{})
	}
}

// carryOn carries out the remaining effects, and more. It does so even if a function of the
// application ends the goroutine during one of them.
func (d *domain) carryOn(more ...core.Effect) {
	defer func() {
		if d.shell.Left() {
			d.carryOn()
		}
	}()
	d.shell.CarryOn(d.a.ctx, more...)
}

// calls returns the ids of the domain's pending calls, in order.
func (d *domain) calls() (ids []uint64) {
	for id, p := range d.a.pending {
		if p.d == d {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// domainView returns what the domain publishes now.
func (d *domain) domainView() domainView {
	c := d.core
	return domainView{
		replica: c.Replica(), keys: c.Keys(), seen: c.Seen(), ready: c.Ready(), silent: c.Silent(),
		stats: c.Stats(), lags: c.Lags(), quorum: c.QuorumStatus(),
		disk: c.Disk(),
	}
}

// of returns the domain of a key.
func (a *replica) of(key string) *domain {
	if a.l.r.durableKeys.durable(key) {
		return a.durable
	}
	return a.volatile
}

// each starts an operation at every domain. It calls done once, with the errors in the order of the
// domains: when all operations have finished, or when one has finished for which end returns
// enough. end maps the result of one operation to its error.
func (a *replica) each(timeout time.Duration, event func(id uint64, deadline time.Time) core.Event,
	end func(*domain, core.Done, error) (why error, enough bool), done func([]error)) {
	left, errs := len(a.domains), make([]error, len(a.domains))
	for i, d := range a.domains {
		a.start(d, timeout, "", false, event, func(e core.Done, err error) {
			if left == 0 {
				return
			}
			why, enough := end(d, e, err)
			if errs[i] = why; enough {
				left = 1
			}
			if left--; left == 0 {
				done(errs)
			}
		})
	}
}
