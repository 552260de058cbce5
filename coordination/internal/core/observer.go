package core

import "time"

// Observer keeps a session's knowledge about one other session up to date. It reads that session's
// record when a watcher reports a change, and every Config.Retry. While no watcher runs, it reads
// four times as often, to see renewals soon. When the record has been unchanged for long enough, it
// ends the tenure. So a lease held through a session that dies can be taken TTL·(1+ρ)+margin after
// its last renewal was seen, not after the first read of a contender.
//
// It emits LoadSession, EndSession and Watch, and takes SessionLoaded, SessionEnded, Changed, Tick
// and Close. What it learns makes the machines ready that wait for a lease of that session
// (Common.Ready).
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
	unsure   bool // whether the record is as it was seen: a write that ends the tenure has failed
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
	case SessionEnded:
		o.onEnded(ev)
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
		o.onEnded(SessionEnded{Op: o.op.id, Err: errTimeout})
	}
	if o.undecided() && o.now >= o.peer.freeAt(o.cfg) {
		o.op, o.due = operation{}, o.now
	}
	if o.op.id == 0 && o.now >= o.due {
		o.call(now)
	}
	return o.out
}

// call ends the tenure if it is overdue, or reads the record.
func (o *Observer) call(now Reading) {
	o.ops++
	o.due = o.now + o.poll()
	if o.overdue() && !o.unsure {
		o.op = operation{id: o.ops, kind: ending, sent: now, known: o.peer.seen.record.Token}
		o.out = append(o.out, o.peer.end(o.op.id))
		return
	}
	o.op = operation{id: o.ops, kind: consulting, sent: now, known: o.peer.last}
	o.out = append(o.out, LoadSession{o.op.id, o.peer.nonce, false})
}

// overdue reports whether the tenure in the record may be ended.
func (o *Observer) overdue() bool {
	return o.peer.seen.version != "" && !o.settled() && o.now >= o.peer.freeAt(o.cfg)
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
	if ev.Op != o.op.id || o.op.kind != consulting {
		return
	}
	op := o.op
	o.op = operation{}
	changed := o.due <= o.now
	if ev.Err != nil {
		o.failed()
		return
	}
	o.peer.observe(ev, op.known, o.now)
	o.cfg.Common.tell(o.peer)
	if !o.overdue() {
		o.failures = 0
	}
	o.unsure = false
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

// onEnded handles the answer to a write that ends the tenure. If the record was written by another
// session, or may have been by this one, it is read before the next try.
func (o *Observer) onEnded(ev SessionEnded) {
	if ev.Op != o.op.id || o.op.kind != ending {
		return
	}
	token := o.op.known
	o.op = operation{}
	if ev.Status != Written {
		o.failed()
		o.unsure = true
		if ev.Status == Conflicted && o.failures == 1 {
			o.due = o.now
		}
		return
	}
	o.failures = 0
	o.peer.hasEnded(token, ev.Version, o.now)
	o.cfg.Common.tell(o.peer)
	o.due = o.now + o.cfg.audit()
}

func (o *Observer) failed() {
	o.failures++
	o.due = o.now + o.cfg.backoff(o.cfg.Retry, o.failures)
}

// settled reports whether the session is known to hold nothing.
func (o *Observer) settled() bool {
	r := o.peer.seen.record
	return o.peer.seen.version != "" && (blank(r) || o.peer.over(r.Token))
}
