package core

import "time"

// Observer keeps a session's knowledge about one other session up to date. It reads that session's
// record when a watcher reports a change, every Config.Retry, and when the record would have
// lapsed. While no watcher runs, it reads four times as often, to see renewals soon. So a lease
// held through a session that dies can be taken TTL·(1+ρ)+margin after its last renewal was seen,
// not after the first read of a contender.
//
// It emits LoadSession, Watch and Bury, and takes SessionLoaded, Changed, Tick and Close. What it
// learns makes the machines ready that wait for a lease of that session (Common.Ready).
type Observer struct {
	cfg  Config
	peer *peer
	now  time.Duration
	out  []Effect

	ops      uint64
	op       operation // in flight, if op.id != 0
	due      time.Duration
	failures int
	watched  bool // a change of the record would be reported
	begun    bool
	closed   bool
}

// NewObserver returns an observer of the session of that nonce. It starts with its first step.
func NewObserver(cfg Config, nonce string) *Observer {
	return &Observer{cfg: cfg, peer: cfg.Common.hold(nonce, nil)}
}

// Step lets time advance to now, then handles the event. The caller owns the returned slice.
func (o *Observer) Step(now Reading, ev Event) []Effect {
	o.now, o.out = now.Mono, nil
	if o.closed {
		return nil
	}
	if !o.begun {
		o.begun, o.due = true, o.now
		o.out = append(o.out, Watch{On: true})
	}
	switch ev := ev.(type) {
	case SessionLoaded:
		o.onLoaded(ev)
	case Unwatched:
		o.watched = false
	case Changed:
		o.watched = true
		if r := o.peer.seen.record; ev.Record.Token != r.Token || ev.Record.Attempt != r.Attempt ||
			blank(ev.Record) != blank(r) {
			o.due = o.now
			if !o.peer.report.of(ev.Record) {
				o.peer.report = report{ev.Record, o.now}
			}
		}
	case Close:
		o.close()
		return o.out
	}
	if o.op.id != 0 && o.now-o.op.sent.Mono >= o.cfg.patience() {
		o.onLoaded(SessionLoaded{Op: o.op.id, Err: errTimeout})
	}
	if o.undecided() && o.now >= o.peer.freeAt(o.cfg) {
		o.op, o.due = operation{}, o.now
	}
	if o.op.id == 0 && o.now >= o.due {
		o.ops++
		o.op = operation{id: o.ops, kind: consulting, sent: now, known: o.peer.last}
		o.due = o.now + o.poll()
		o.out = append(o.out, LoadSession{o.op.id, o.peer.nonce, false})
	}
	return o.out
}

// Wake returns when the observer wants a Tick, on the monotonic clock.
func (o *Observer) Wake() (at time.Duration, ok bool) {
	switch {
	case o.closed || !o.begun:
		return 0, false
	case o.undecided():
		return min(o.op.sent.Mono+o.cfg.patience(), o.peer.freeAt(o.cfg)), true
	case o.op.id != 0:
		return o.op.sent.Mono + o.cfg.patience(), true
	}
	return o.due, true
}

// undecided reports whether a read is in flight that began before the session would have lapsed. If
// it is not answered by then, another one decides sooner.
func (o *Observer) undecided() bool {
	return o.op.id != 0 && o.peer.seen.version != "" && !o.settled() &&
		o.op.sent.Mono < o.peer.freeAt(o.cfg)
}

// poll returns the time between reads.
func (o *Observer) poll() time.Duration {
	if o.watched {
		return o.cfg.poll()
	}
	return o.cfg.poll() / 4
}

// Quiet reports whether the observer is closed.
func (o *Observer) Quiet() bool { return o.closed }

func (o *Observer) close() {
	o.closed = true
	o.cfg.Common.drop(o.peer, nil)
	o.out = append(o.out, Watch{On: false})
}

// onLoaded handles a read, and plans the next one. If a change was reported while the read was in
// flight, it reads again at once.
func (o *Observer) onLoaded(ev SessionLoaded) {
	if ev.Op != o.op.id {
		return
	}
	op := o.op
	o.op = operation{}
	changed := o.due <= o.now
	if ev.Err != nil {
		o.failures++
		o.due = o.now + o.cfg.backoff(o.cfg.Retry, o.failures)
		return
	}
	o.failures = 0
	o.peer.observe(ev, op.known, o.now)
	if p := o.peer; op.sent.Mono >= p.freeAt(o.cfg) && !o.settled() {
		if b, ok := p.lapse(); ok {
			o.out = append(o.out, b)
		}
	}
	o.cfg.Common.tell(o.peer)
	switch {
	case changed:
		o.due = o.now
	case o.settled():
		o.due = o.now + o.cfg.audit()
	case o.peer.seen.version == "": // there is no record yet, or no longer
		o.due = o.now + o.poll()
	default:
		o.due = min(max(o.now, op.sent.Mono+o.poll()), o.peer.freeAt(o.cfg))
	}
}

// settled reports whether the session is known to hold nothing.
func (o *Observer) settled() bool {
	r := o.peer.seen.record
	return o.peer.seen.version != "" && (blank(r) || o.peer.over(r.Token))
}
