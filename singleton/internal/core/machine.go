package core

import "time"

// State is the state of a Machine.
//
//	Younger ─elected──▶ AcquiringLease ──held──▶ Active ─────not elected, closed, lost──▶ Stopping
//	   ▲                  │        ▲              │  ▲                                       │
//	   │              not elected  │        failed│  │back-off over               terminated │
//	   │                  ▼    elected again      ▼  │                                       ▼
//	   ├──attempt ended─Cancelling─┘            BackOff ─not elected, closed, lost────▶ Releasing
//	   └───────────────────────────────────────────────────────release has ended────────────┘
//
// After Close or a removal it goes from Younger to Stopped, for good.
type State uint8

// States. The instance exists in Active and Stopping, and suspended in BackOff if it has panicked.
// The lease is held from Active to Releasing.
const (
	Younger        State = iota // another member should host, or no member is known that should
	AcquiringLease              // an attempt to acquire is pending
	Cancelling                  // an attempt that is unwanted, or to be repeated, has not ended yet
	Active                      // the instance runs
	BackOff                     // the instance has failed; it will be made again in the same tenure
	Stopping                    // the instance was told to stop and has not terminated yet
	Releasing                   // the instance has terminated, and the lease is being released
	Stopped                     // this member never hosts again
)

var stateNames = [...]string{"younger", "acquiring lease", "cancelling", "active", "back-off",
	"stopping", "releasing", "stopped"}

func (s State) String() string { return stateNames[s] }

// Machine is one member's part in hosting the instance.
//
// It keeps these rules whatever the order of events:
//
//  1. An instance is started only under a tenure, and only when the instance before has terminated.
//  2. A tenure is released only when its instance has terminated.
//  3. There is one attempt to acquire at a time. A grant that is not wanted is released.
type Machine struct {
	cfg   Config
	now   time.Time
	out   []Effect
	state State
	ring  ring

	attempt    uint64 // number of the last attempt
	token      uint64 // of the tenure; 0: none
	run        uint64 // number of the last instance
	stoppedNow bool   // the instance of run was told to stop now
	broken     bool   // the instance of run has panicked and is suspended; in BackOff only
	lost       bool   // the tenure is over, and its instance or its release has not ended yet
	stuck      bool   // the instance of a lost tenure does not terminate

	follows      bool // the lease is observed
	closing      bool
	stopDeadline time.Time // deadline of an instance that is stopping; zero: no hurry
	told         bool      // Closed was emitted

	declining  declining
	doubt      doubt
	up         time.Time // when the first view came; zero: not yet
	opened     time.Time // since when the gate is open and there is a view, if both
	met        bool      // enough members were seen, enough time passed, or a host handed over
	hasStarted bool      // the start is over
	grace      time.Time // end of the wait for a claim of the preferred member; zero: no wait

	due      time.Time // when the state's wait ends; zero: no wait
	started  time.Time // when the present instance started
	failures int       // of instances, in a row
}

// New returns the machine of a member that has not seen a view yet.
func New(cfg Config) *Machine { return &Machine{cfg: cfg, ring: ring{valid: cfg.AnnouncedFor}} }

// State returns the present state.
func (m *Machine) State() State { return m.state }

// Token returns the token of the tenure, or 0 if there is none.
func (m *Machine) Token() uint64 { return m.token }

// Run returns the number of the present instance, or 0 if there is none.
func (m *Machine) Run() uint64 {
	if m.state == Active || m.state == Stopping || m.state == BackOff && m.broken {
		return m.run
	}
	return 0
}

// Failing reports whether this member declines because instances failed here.
func (m *Machine) Failing() bool { return m.declining.asFailing() }

// Next returns the member that gets messages which are not for an instance here; false if that is
// this member, or if none is known.
func (m *Machine) Next() (Member, bool) {
	e := m.ring.elect()
	return e, e.known() && !e.same(m.ring.self)
}

// Last reports whether every other member has left: there is no next host.
func (m *Machine) Last() bool { return !m.ring.stays() }

// Keeps reports whether messages wait here: for the instance, for the end of the hand-over, or
// until a member is known that should host.
func (m *Machine) Keeps() bool {
	if m.state == Stopped {
		return false
	}
	_, elsewhere := m.Next()
	return !elsewhere || m.state != Younger && !m.lost
}

// NextWake returns when a Wake is wanted; zero if not at all.
func (m *Machine) NextWake() time.Time {
	if m.over() {
		return m.due
	}
	return earliest(m.due, m.ring.due(), m.declining.due(m), m.startEnds(), m.graceEnd(),
		m.doubt.due(m.declining.looking))
}

// Step handles one event at time now and returns its effects, in order. The caller owns the slice.
func (m *Machine) Step(now time.Time, ev Event) []Effect {
	m.now, m.ring.now, m.out = now, now, nil
	switch ev := ev.(type) {
	case View:
		m.onView(ev)
	case Leaving:
		m.ring.onLeaving(ev.Member)
	case Held:
		m.onHeld(ev)
	case Failed:
		m.onFailed(ev)
	case Lost:
		m.onLost(ev)
	case Gone:
		m.onGone(ev)
	case Broken:
		m.onBroken(ev)
	case Released:
		m.onReleased(ev)
	case Free:
		m.met = true
		if m.state == AcquiringLease { // a new attempt reads the lease at once
			m.cancel()
		}
	case Close:
		m.close()
	case Gate:
		m.onGate(ev)
	case Announcement:
		m.ring.onAnnouncement(ev)
	case Probed:
		m.onProbed(ev)
	case Wake:
	}
	m.endStart()
	m.declineIfFailing()
	m.attend()
	m.watch()
	m.yield()
	m.settle()
	m.follow()
	return m.out
}

// standbys is the number of members next to the elected one, by age and by preference, that observe
// the lease.
const standbys = 2

// follow lets the members that may host next observe the lease, so that after a crash of the host
// its TTL runs while the crash is being noticed.
func (m *Machine) follow() {
	r := &m.ring
	on := m.state == Younger && !m.over() &&
		(r.standby(r.hosts, standbys) || r.standby(r.prefers, standbys))
	if on != m.follows {
		m.follows = on
		m.emit(Follow{on})
	}
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

// enter changes the state, and cancels the wait of the former state.
func (m *Machine) enter(s State) { m.state, m.due = s, time.Time{} }

// over reports whether this member will never host again.
func (m *Machine) over() bool { return m.closing || m.ring.removed }

// elected reports whether this member is the one that should host.
func (m *Machine) elected() bool {
	e := m.ring.elect()
	return !m.over() && e.known() && e.same(m.ring.self)
}

// wanted reports whether this member should host now.
func (m *Machine) wanted() bool { return m.elected() && m.hasStarted }

// unwanted reports whether it should not; if no member is known that should, neither is true. An
// instance leaves this member only for another one that has announced that it can host.
func (m *Machine) unwanted() bool {
	e := m.ring.elect()
	return m.over() || m.declining.on || e.known() && !e.same(m.ring.self) && m.ring.spoke(e)
}

// passed reports whether the state's wait has ended.
func (m *Machine) passed() bool { return !m.due.IsZero() && !m.now.Before(m.due) }

// settle moves the state toward what is wanted.
func (m *Machine) settle() {
	switch m.state {
	case Younger:
		m.settleYounger()
	case AcquiringLease:
		if !m.wanted() {
			m.cancel()
		}
	case Active:
		if m.unwanted() {
			m.stop()
		}
	case BackOff:
		if m.unwanted() {
			m.end()
		} else if m.passed() {
			m.again()
		}
	case Stopping:
		if !m.stoppedNow {
			m.due = earliest(m.due, m.stopDeadline)
			if m.passed() {
				m.stopNow()
			}
		}
	}
	if m.state == Stopped && m.closing && !m.told {
		m.told = true
		m.emit(Closed{})
	}
}

func (m *Machine) settleYounger() {
	if m.passed() {
		m.due = time.Time{}
	}
	switch {
	case m.over():
		m.enter(Stopped)
	case m.wanted() && m.due.IsZero() && !m.defers():
		m.enter(AcquiringLease)
		m.attempt++
		m.emit(Acquire{m.attempt})
	}
}

// hurry bounds the stop of the present instance, whether it has begun or not.
func (m *Machine) hurry() { m.stopDeadline = m.now.Add(m.cfg.Hurry) }

func (m *Machine) cancel() {
	m.enter(Cancelling)
	m.emit(Cancel{m.attempt})
}

func (m *Machine) close() {
	if m.closing {
		return
	}
	m.closing = true
	m.ring.onLeaving(m.ring.self)
	m.emit(TellLeaving{})
}
