package coordination

import (
	"cmp"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// LeaseStatus is what a session knows about one of its leases, for human readers and dashboards. It
// may be outdated when it is read.
type LeaseStatus struct {
	Name string
	// Held reports that this session holds the lease, with Token. Unless the lease is renewed, it
	// expires after Remaining. Forever reports that the lease does not expire; Remaining then has
	// no meaning.
	Held      bool
	Forever   bool
	Token     Token // of the tenure if Held, otherwise the largest token this session has seen
	Remaining time.Duration
	// NearExpiry reports that renewals fail; see Grant.OnNearExpiry.
	NearExpiry bool
	// Waiting is the number of callers in this process that wait for the lease.
	Waiting int
	// Owner is the holder according to the record that this session read or wrote last. It is empty
	// if the lease was free, or if the session has not read the record.
	Owner string
	// Failure is the error of the last call of the store, or nil if the store answered.
	Failure error
}

// Leases returns the leases that the session knows, sorted by name: those that it holds, waits for,
// observes or has used. It asks the session's goroutine and does not access the store. After Close
// it returns nil.
func (s *Session) Leases() []LeaseStatus {
	done := make(chan []LeaseStatus, 1)
	if !s.send(message{do: func(l *loop) { done <- l.statuses() }}) {
		return nil
	}
	all := <-done
	slices.SortFunc(all, func(a, b LeaseStatus) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (l *loop) statuses() []LeaseStatus {
	all := make([]LeaseStatus, 0, len(l.leases))
	for _, d := range l.leases {
		if m, ok := d.machine.(*core.Machine); ok && d.told == nil {
			all = append(all, d.status(m))
		}
	}
	return all
}

func (d *driver) status(m *core.Machine) LeaseStatus {
	record, high := m.Seen()
	s := LeaseStatus{Name: d.lease.name, Token: high, Waiting: m.Waiters(),
		Owner:   record.Owner,
		Failure: d.failure}
	if record.Nonce == "" {
		s.Owner = ""
	}
	if g := d.grant; g != nil && g.end.Load() == nil {
		s.Held, s.Forever, s.Token, s.Owner = true, d.lease.s.cfg.Forever, g.token,
			d.lease.s.cfg.Owner
		s.Remaining, s.NearExpiry = g.Remaining(), d.warned || d.lease.s.nearBySession()
	}
	return s
}

// nearBySession reports whether the session record, which renews all leases, is near expiry.
func (s *Session) nearBySession() bool {
	s.stats.Lock()
	defer s.stats.Unlock()
	return s.stats.near
}
