package coordination

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/bugs"
)

// Session connects this process to one store. One goroutine drives all its leases; store calls run
// in goroutines of their own. Open starts a session and Close ends it. A session belongs to no
// actor system: a process that begins another incarnation of its member keeps the same session, and
// by then the leases of the previous incarnation's actors have been released.
//
// A session that Open has not made holds nothing: methods with an error result return ErrInvalid,
// also those of its leases.
type Session struct {
	store Store
	cfg   Config
	nonce string
	clock Clock
	begun time.Duration // when the session was opened, on the monotonic clock
	ids   atomic.Uint64
	stats stats
	bugs  bugs.Log

	meters *instruments

	shared bool         // one record is renewed for all leases
	common *core.Common // of the machines; used only by the loop
	batch  *batch       // nil: each swap is a call of its own

	inbox   chan message
	done    chan struct{} // closed when the loop has stopped
	closing sync.Once
	hurry   chan struct{} // closed when the context of Close ends first
	hurried sync.Once
	result  error // of Close; set before done is closed

	calls context.Context // ends with the session; parent of every call of the store
	abort context.CancelFunc
	work  sync.WaitGroup // goroutines other than the loop

	mu struct {
		sync.Mutex
		leases map[string]*Lease
		closed bool // spawn starts no goroutine any more
	}
}

// message is one input to the loop.
type message struct {
	to    *Lease // nil: do, or Close
	event core.Event
	reply chan answer // for Acquire and Release, else nil; capacity one
	do    func(*loop)
}

type answer struct {
	core.Answer
	grant *Grant
}

// Open starts a session. It does not contact the store: a nil error does not mean that the store is
// reachable.
func Open(store Store, cfg Config) (*Session, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Forever && !keepsSessions(store) {
		return nil, fmt.Errorf(
			"%w: Forever needs a store that implements SessionKeeper, %T does not",
			ErrInvalid, store)
	}
	if _, ok := store.(leasestore.Documents); cfg.Fair && !ok {
		return nil, fmt.Errorf("%w: Fair needs a store that implements Documents, %T does not",
			ErrInvalid, store)
	}
	s := &Session{
		store: store, cfg: cfg.withDefaults(), nonce: rand.Text(), clock: cfg.Clock,
		common: &core.Common{}, inbox: make(chan message), done: make(chan struct{}),
		hurry: make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = newClock()
	}
	s.begun = s.now().Mono
	s.mu.leases = map[string]*Lease{}
	s.shared = keepsSessions(store) && !cfg.Forever
	if s.batch = s.newBatch(); s.batch != nil {
		s.common.Batch = leasestore.MaxBatch
	}
	s.calls, s.abort = context.WithCancel(context.Background())
	s.stats.status = Status{Owner: s.cfg.Owner, Lost: map[Loss]uint64{},
		Calls: map[string]Calls{}}
	if err := s.observe(); err != nil {
		s.abort()
		return nil, fmt.Errorf("coordination: metrics: %w", err)
	}
	go s.run()
	return s, nil
}

// Lease returns the lease of a name. It does no I/O. The same name gives the same lease. The
// session remembers each name until Lease.Forget or Close. A name has from 1 to leasestore.MaxName
// bytes of UTF-8 and does not begin with leasestore.SessionRecords; the methods of a lease with
// another name return ErrInvalid, and so do those of a lease of a nil session.
func (s *Session) Lease(name string) *Lease {
	if !s.opened() {
		return &Lease{name: name}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.mu.leases[name]
	if !ok {
		l = &Lease{s: s, name: name}
		l.driver = newDriver(l, s.machine(name))
		s.mu.leases[name] = l
	}
	return l
}

// machine returns a new state machine for a lease.
func (s *Session) machine(lease string) *core.Machine {
	cfg := s.cfg.core(s.nonce)
	cfg.Name, cfg.Shared, cfg.Common, cfg.Opened = lease, s.shared, s.common, s.begun
	return core.New(cfg)
}

// TTL returns the session's Config.TTL: how long its leases outlive it.
func (s *Session) TTL() time.Duration { return s.cfg.TTL }

// opened reports whether Open has made the session.
func (s *Session) opened() bool { return s != nil && s.done != nil }

var errNotOpened = fmt.Errorf("%w: the session is nil, or Open has not made it", ErrInvalid)

func (s *Session) id() uint64 { return s.ids.Add(1) }

func (s *Session) post(to *Lease, ev core.Event, reply chan answer) bool {
	return s.send(message{to: to, event: ev, reply: reply})
}

// send reports whether the loop has received the message. The loop answers every message it
// receives.
func (s *Session) send(m message) bool {
	if !s.opened() {
		return false
	}
	select {
	case s.inbox <- m:
		return true
	case <-s.done:
		return false
	}
}

// spawn starts a goroutine that Close waits for, unless the session is closed.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return false
	}
	s.work.Go(f)
	return true
}

// loop is the state of the session's goroutine.
type loop struct {
	s       *Session
	leases  []*driver
	names   map[string]*driver // the same drivers, by name
	wakes   wakes
	closing closing
	now     message // being handled
	before  core.Reading

	keeper *driver       // the driver of the session record; nil if each lease has its own renewals
	own    *core.Machine // the machine of the keeper
	back   core.Event    // the last event that the keeper reported

	telling bool // the leases are being told what the keeper reported
	named   int  // leases that have ended for that

	observers map[string]*observer // by the nonce of the other session
}

func (s *Session) run() {
	l := &loop{s: s, before: s.now(), names: map[string]*driver{},
		observers: map[string]*observer{}}
	if s.shared {
		l.newKeeper()
	}
	alarm := newAlarm(s.clock)
	defer alarm.off()
	defer func() {
		if p := recover(); p != nil {
			l.broken(p)
		}
	}()
	for !l.finished() {
		if l.overdue(closeOperations) {
			l.end()
			return
		}
		alarm.within(l.sleep())
		select {
		case l.now = <-s.inbox:
			l.take(l.now)
			l.now = message{}
		case <-alarm.rings:
			s.overrun(alarm.late())
			alarm.off()
			l.tick()
		case <-s.hurry:
			l.close()
			l.end()
			return
		}
		l.proceed()
		l.keep()
	}
	l.discard()
	l.end()
}

func (l *loop) take(m message) {
	switch {
	case m.do != nil:
		m.do(l)
		return
	case m.to == nil:
		l.close()
		return
	}
	if d := l.driver(m); d != nil {
		d.take(m)
	}
}

// driver returns the driver that a message is for. It returns nil if the lease was forgotten and
// the message has no meaning for a new driver.
func (l *loop) driver(m message) *driver {
	if d := m.to.driver; d.loop != nil {
		return d
	}
	if _, known := l.names[m.to.name]; !known {
		switch m.event.(type) {
		case core.Acquire:
		case core.Release:
			if m.reply != nil {
				m.reply <- answer{Answer: core.Answer{Outcome: core.Done}}
			}
			return nil
		default:
			return nil
		}
	}
	return l.known(m.to)
}

// known returns the driver of the lease's name. On the first use of a name, the loop takes over the
// driver of the lease. If the name was forgotten, an older Lease of the name may do so again.
func (l *loop) known(of *Lease) *driver {
	if d := l.names[of.name]; d != nil {
		return d
	}
	d := of.driver
	d.loop, d.index = l, len(l.leases)
	l.names[of.name] = d
	l.leases = append(l.leases, d)
	if l.back != nil {
		d.step(l.back)
	}
	if l.closing.begun {
		d.step(core.Close{})
	}
	return d
}

// tick steps the machines whose tick is due, or all of them if a clock has jumped. It steps the
// machine of the session record first: the end of that record ends the leases, with the right
// cause.
func (l *loop) tick() {
	now := l.s.now()
	jumped := now.Elapsed(l.before)-(now.Mono-l.before.Mono) > l.s.cfg.Margin/4
	l.before = now
	due := l.wakes.due(now.Mono)
	if jumped {
		due = slices.Concat(due, l.leases)
	}
	if l.keeper != nil && (jumped || slices.Contains(due, l.keeper)) {
		l.keeper.step(core.Tick{})
	}
	for _, d := range due {
		if d != l.keeper {
			d.step(core.Tick{})
		}
	}
}

// proceed steps the machines that what has happened to others has made ready.
func (l *loop) proceed() {
	for names := l.s.common.Ready(); len(names) > 0; names = l.s.common.Ready() {
		for _, name := range names {
			if d := l.names[name]; d != nil {
				d.step(core.Tick{})
			}
		}
	}
}

// sleep returns the time until the next tick. It is at most a tenth of the TTL while any machine is
// active, so that the loop notices a clock jump or a suspended machine.
func (l *loop) sleep() time.Duration {
	at, ok := l.wakes.next()
	if !ok && !l.closing.begun {
		return time.Hour
	}
	sleep := l.s.cfg.TTL / 10
	if ok {
		sleep = min(sleep, at-l.s.now().Mono)
	}
	return max(0, min(sleep, l.untilOverdue()))
}
