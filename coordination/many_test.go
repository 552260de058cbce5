package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// metered is a memory store that carries out rate calls a second, and a hundred at once after a
// rest. Like the client of Kubernetes, it refuses a call that would begin after its deadline. The
// records of sessions have their own limit. It counts all calls.
type metered struct {
	memory.Store
	rate int
	mu   struct {
		sync.Mutex
		next  time.Time // when the next call may begin, if there was no rest
		calls int
	}
}

var errTooMany = errors.New("more calls than the limit allows")

func (s *metered) turn(ctx context.Context, name string) error {
	now, every := time.Now(), time.Second/time.Duration(s.rate)
	s.mu.Lock()
	s.mu.calls++
	if strings.HasPrefix(name, leasestore.SessionRecords) {
		s.mu.Unlock()
		return ctx.Err()
	}
	if rested := now.Add(-100 * every); s.mu.next.Before(rested) {
		s.mu.next = rested
	}
	begin := s.mu.next.Add(every)
	if end, limited := ctx.Deadline(); limited && begin.After(end) {
		s.mu.Unlock()
		return errTooMany
	}
	s.mu.next = begin
	s.mu.Unlock()
	if begin.After(now) {
		time.Sleep(begin.Sub(now))
	}
	return ctx.Err()
}

func (s *metered) LoadDocument(ctx context.Context, name string) ([]byte, leasestore.Version,
	error) {
	if err := s.turn(ctx, name); err != nil {
		return nil, "", err
	}
	return s.Store.LoadDocument(ctx, name)
}

func (s *metered) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := s.turn(ctx, name); err != nil {
		return "", err
	}
	return s.Store.SwapDocument(ctx, name, old, next)
}

func (s *metered) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.calls
}

func (s *metered) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	if err := s.turn(ctx, name); err != nil {
		return leasestore.Record{}, "", err
	}
	return s.Store.Load(ctx, name)
}

func (s *metered) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := s.turn(ctx, name); err != nil {
		return "", err
	}
	return s.Store.Swap(ctx, name, old, next)
}

// many is a bubble with a session that holds leases, and another one on a metered store.
type many struct {
	*testing.T
	holder, other *coordination.Session
	away          *flaky
	store         *metered
	acquired      sync.WaitGroup
}

func manyLeases(t *testing.T, leases, rate int, play func(m *many)) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		m := &many{T: t, away: &flaky{Store: st}, store: &metered{Store: st, rate: rate}}
		m.holder, m.other = m.open(m.away), m.open(m.store)
		for i := range leases {
			if _, err := m.holder.Lease(nameOf(i)).TryAcquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		play(m)
		_ = m.other.Close(t.Context())
		_ = m.holder.Close(t.Context())
		m.acquired.Wait()
	})
}

func nameOf(i int) string { return fmt.Sprint("lease-", i) }

func (m *many) open(store coordination.Store) *coordination.Session {
	return m.openWith(store, coordination.Config{})
}

func (m *many) openWith(store coordination.Store,
	cfg coordination.Config) *coordination.Session {
	s, err := coordination.Open(store, cfg)
	if err != nil {
		m.Fatal(err)
	}
	return s
}

// acquire lets the other session wait for leases.
func (m *many) acquire(leases int) {
	for i := range leases {
		m.acquired.Go(func() { _, _ = m.other.Lease(nameOf(i)).Acquire(m.Context()) })
	}
}

// A member that takes over a thousand leases of a dead one, through a store that serves fifty calls
// a second, loses none of its own.
func TestTakeover_AThousandLeasesCostNoOther(t *testing.T) {
	const own = 20
	for rate, leases := range map[int]int{50: 1000, 5: 60} {
		for _, waited := range []bool{false, true} {
			t.Run(fmt.Sprintf("rate=%d,waited=%v", rate, waited), func(t *testing.T) {
				manyLeases(t, leases, rate, func(m *many) {
					for i := range own {
						if _, err := m.other.Lease(fmt.Sprint("own-", i)).Acquire(
							m.Context()); err != nil {
							t.Fatal(err)
						}
					}
					if waited {
						m.acquire(leases)
						time.Sleep(10 * time.Minute)
					}
					m.away.away.Store(true)
					died, before := time.Now(), m.store.calls()
					if !waited {
						m.acquire(leases)
					}
					for m.other.Status().Held < own+leases && time.Since(died) < time.Hour {
						time.Sleep(100 * time.Millisecond)
					}
					took, calls := time.Since(died), m.store.calls()-before
					st := m.other.Status()
					t.Logf("%d of %d leases after %v and %d calls, lost %v",
						st.Held-own, leases, took, calls, st.Lost)
					if len(st.Lost) > 0 {
						t.Errorf("lost: %v", st.Lost)
					}
					// a read and a write for each lease, a TTL, and reads of held leases meanwhile
					most := 20*time.Second + 3*time.Duration(leases)*time.Second/time.Duration(rate)
					if took > most {
						t.Errorf("it took %v, more than %v", took, most)
					}
					if calls > 4*leases { // few are refused
						t.Errorf("%d calls for %d leases", calls, leases)
					}
				})
			})
		}
	}
}

// The audits of a thousand held leases need more calls than the store makes. Other leases are
// acquired all the same.
func TestAcquire_GetsCallsBesideAudits(t *testing.T) {
	const leases, rate = 1000, 30 // of 42 audits a second
	manyLeases(t, 0, rate, func(m *many) {
		m.acquire(leases)
		begun := time.Now()
		for m.other.Status().Held < leases && time.Since(begun) < 10*time.Minute {
			time.Sleep(time.Second)
		}
		t.Logf("%d of %d leases after %v", m.other.Status().Held, leases, time.Since(begun))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(m.Context(), 10*time.Minute)
		defer cancel()
		begun = time.Now()
		_, err := m.other.Lease("another").Acquire(ctx)
		took := time.Since(begun)
		t.Logf("another one after %v", took)
		if st := m.other.Status(); err != nil || st.Held != leases+1 || len(st.Lost) > 0 ||
			took > 10*time.Second {
			t.Errorf("%v after %v, %d held, lost %v", err, took, st.Held, st.Lost)
		}
	})
}

// Waiting leases cost the store the same number of calls, however many they are, also if their
// waiters stand in queues.
func TestWaiting_CallsDoNotGrowWithTheLeases(t *testing.T) {
	const seconds = 100
	for _, fair := range []bool{false, true} {
		calls := map[int]int{}
		for _, leases := range []int{1, 10, 1000} {
			manyLeases(t, leases, 1000, func(m *many) {
				_ = m.other.Close(m.Context())
				m.other = m.openWith(m.store, coordination.Config{Fair: fair})
				m.acquire(leases)
				time.Sleep(time.Minute)
				before := m.store.calls()
				time.Sleep(seconds * time.Second)
				calls[leases] = m.store.calls() - before
				t.Logf("fair=%v, %d waiting leases: %d calls in %d s", fair, leases, calls[leases],
					seconds)
			})
		}
		if calls[1000] > calls[1]+calls[1]/10 {
			t.Errorf("fair=%v: %d calls for 1 waiting lease, %d for 1000", fair, calls[1],
				calls[1000])
		}
	}
}

// line is a memory store without watches whose calls a server carries out one after the other, in
// order of arrival: those of all sessions, and also those that have been given up.
type line struct {
	leasestore.Store
	call time.Duration // that the server takes for one
	mu   *sync.Mutex
	free *time.Time // when the server has carried out all calls that have arrived
	away *atomic.Bool
}

func (s line) KeepsSessions() bool { return true }

func (s line) turn(ctx context.Context) error {
	if s.away.Load() {
		return errAway
	}
	s.mu.Lock()
	if now := time.Now(); s.free.Before(now) {
		*s.free = now
	}
	*s.free = s.free.Add(s.call)
	done := time.After(time.Until(*s.free))
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s line) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	if err := s.turn(ctx); err != nil {
		return leasestore.Record{}, "", err
	}
	return s.Store.Load(ctx, name)
}

func (s line) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := s.turn(ctx); err != nil {
		return "", err
	}
	return s.Store.Swap(ctx, name, old, next)
}

// A server that carries out 20 to 100 calls a second answers the renewals of a session in time,
// also while that session, or another one, acquires, reads and takes over a thousand leases.
func TestTakeover_ASlowServerAnswersRenewalsInTime(t *testing.T) {
	const own, leases = 20, 1000
	for _, rate := range []int{20, 60, 100} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := line{memory.New(), time.Second / time.Duration(rate), &sync.Mutex{},
					&time.Time{}, &atomic.Bool{}}
				its := server
				its.away = &atomic.Bool{}
				m := &many{T: t}
				m.holder, m.other = m.open(its), m.open(server)
				var held sync.WaitGroup
				for i := range own {
					held.Go(func() {
						_, _ = m.other.Lease(fmt.Sprint("own-", i)).Acquire(t.Context())
					})
				}
				for i := range leases {
					held.Go(func() { _, _ = m.holder.Lease(nameOf(i)).Acquire(t.Context()) })
				}
				begun := time.Now()
				for m.holder.Status().Held < leases && time.Since(begun) < time.Hour {
					time.Sleep(time.Second)
				}
				m.acquire(leases)
				time.Sleep(2 * time.Minute)
				if st := m.holder.Status(); st.Held != leases || len(st.Lost) > 0 {
					t.Errorf("the holder has %d leases, lost %v", st.Held, st.Lost)
				}
				its.away.Store(true)
				died := time.Now()
				for m.other.Status().Held < own+leases && time.Since(died) < time.Hour {
					time.Sleep(100 * time.Millisecond)
				}
				took, st := time.Since(died), m.other.Status()
				t.Logf("%d of %d leases after %v, lost %v", st.Held-own, leases, took, st.Lost)
				if len(st.Lost) > 0 {
					t.Errorf("lost: %v", st.Lost)
				}
				// a read and a write for each lease, a TTL, and reads of held leases meanwhile
				if most := 20*time.Second + 3*leases*server.call; took > most {
					t.Errorf("it took %v, more than %v", took, most)
				}
				_ = m.other.Close(t.Context())
				_ = m.holder.Close(t.Context())
				m.acquired.Wait()
				held.Wait()
			})
		})
	}
}
