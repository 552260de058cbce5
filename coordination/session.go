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
)

// Session is this process towards one store. One goroutine drives all its leases; calls of the store
// run beside it. Open makes it, Close ends it. It belongs to no actor system: a process that begins another life
// of its member goes on with the same session, and the leases of the ended life's actors are released by then.
type Session struct {
	store Store
	cfg   Config
	nonce string
	clock Clock
	ids   atomic.Uint64
	stats stats

	meters *instruments

	shared bool        // one record is renewed for all leases
	peers  *core.Peers // what is known of other sessions; belongs to the loop

	inbox   chan message
	done    chan struct{} // the loop has ended
	closing sync.Once
	hurry   chan struct{} // Close has run out of patience
	hurried sync.Once
	result  error // of Close; set before done is closed

	calls context.Context // ends with the session; parent of every call of the store
	abort context.CancelFunc
	work  sync.WaitGroup // goroutines beside the loop

	mu struct {
		sync.Mutex
		leases map[string]*Lease
		losses map[*func(*LostError)]struct{} // handlers of OnLost
		closed bool                           // no more goroutines
	}
}

// message is one input of the loop.
type message struct {
	to    *Lease // nil: do, or Close
	event core.Event
	reply chan answer // of Acquire and Release, else nil; has room for one
	do    func(*loop)
}

type answer struct {
	core.Answer
	grant *Grant
}

// Open starts a session. A nil error does not mean that the store has been reached.
func Open(store Store, cfg Config) (*Session, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Forever && !keepsSessions(store) {
		return nil, fmt.Errorf("%w: Forever needs a store that is a SessionKeeper, %T is none", ErrInvalid, store)
	}
	if _, ok := store.(Queuer); cfg.Fair && !ok {
		return nil, fmt.Errorf("%w: Fair needs a store that is a Queuer, %T is none", ErrInvalid, store)
	}
	s := &Session{
		store: store, cfg: cfg.withDefaults(), nonce: rand.Text(), clock: cfg.Clock,
		peers: &core.Peers{}, inbox: make(chan message), done: make(chan struct{}), hurry: make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = newClock()
	}
	s.mu.leases = map[string]*Lease{}
	s.shared = keepsSessions(store) && !cfg.Forever
	s.calls, s.abort = context.WithCancel(context.Background())
	s.stats.status = Status{Owner: s.cfg.Owner, Lost: map[Loss]uint64{}, Calls: map[Operation]Calls{}}
	if err := s.observe(); err != nil {
		s.abort()
		return nil, fmt.Errorf("coordination: metrics: %w", err)
	}
	go s.run()
	return s, nil
}

// Lease names a lease; nothing is sent. The same name gives the same lease. The session remembers each
// name until Lease.Forget, or until it is closed. A name has from 1 to MaxName bytes of UTF-8 and does not begin with
// SessionRecords; the calls of a lease with another name return ErrInvalid.
func (s *Session) Lease(name string) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.mu.leases[name]
	if !ok {
		l = &Lease{s: s, name: name}
		l.driver = newDriver(l, s.machine())
		s.mu.leases[name] = l
	}
	return l
}

// machine returns that of a lease.
func (s *Session) machine() *core.Machine {
	cfg := s.cfg.core(s.nonce)
	cfg.Shared, cfg.Peers = s.shared, s.peers
	return core.New(cfg)
}

// Drain returns the Config.Drain of the session: how long guarded work has to end.
func (s *Session) Drain() time.Duration { return s.cfg.Drain }

func (s *Session) id() uint64 { return s.ids.Add(1) }

func (s *Session) post(to *Lease, ev core.Event, reply chan answer) bool {
	return s.send(message{to: to, event: ev, reply: reply})
}

// send reports whether the loop has taken the message; if so, it answers it.
func (s *Session) send(m message) bool {
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
	names   map[string]*driver // the same
	wakes   wakes
	closing closing
	before  core.Reading

	keeper *driver       // of the session record; nil if each lease is renewed by itself
	own    *core.Machine // of the keeper
	back   core.Event    // the last that it told

	observers map[string]*observer // by the nonce of the other session
}

func (s *Session) run() {
	l := &loop{s: s, before: s.now(), names: map[string]*driver{}, observers: map[string]*observer{}}
	if s.shared {
		l.newKeeper()
	}
	alarm := newAlarm(s.clock)
	defer alarm.off()
	for !l.finished() {
		if l.overdue(closeOperations) {
			l.end()
			return
		}
		alarm.within(l.sleep())
		select {
		case m := <-s.inbox:
			l.take(m)
		case <-alarm.rings:
			alarm.off()
			l.tick()
		case <-s.hurry:
			l.close()
			l.end()
			return
		}
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

// driver returns the driver that a message is for; nil if the message is for one that has been forgotten, and says
// nothing to another.
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

// known returns the driver of the lease of that name, which the loop takes over when it is wanted first. There is one,
// also if the name has been forgotten and an older Lease of it is used again.
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

// tick wakes the machines that want it, or all of them if a clock has jumped; that of the session record first:
// what ends there ends the leases, and says why.
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

// sleep is the time until the next tick; at most a tenth of the TTL while anything is going on, so
// that a jump of a clock or a suspended machine is noticed.
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
