package testkit

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/simnet"
)

// seedVariable is the environment variable that overrides the seed of every Run.
const seedVariable = "TESTKIT_SEED"

// Option is an option of Run.
type Option func(*settings)

type settings struct {
	seed            uint64
	latency, jitter time.Duration
	roles           func(i int) []string
	versions        func(i int) string
	leases          coordination.Config
	store           func(*Store) leasestore.Store
	clocks          func(i int, clock *Clock)
	rejoin          bool
	pause           time.Duration
	provider        *simnet.Provider
}

// Seed sets the seed of all pseudo-random numbers of the network. The default is 1.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// Latency sets the latency of every message, and a random addition below jitter that keeps messages
// in order. The default is 1ms without jitter.
func Latency(latency, jitter time.Duration) Option {
	return func(s *settings) { s.latency, s.jitter = latency, jitter }
}

// Roles sets the roles that the i-th member announces. The default is none.
func Roles(roles func(i int) []string) Option { return func(s *settings) { s.roles = roles } }

// AppVersions sets the version of the application that the i-th member announces. The default is
// none. After a restart the function is called again, so it can return the version of an upgrade.
func AppVersions(versions func(i int) string) Option {
	return func(s *settings) { s.versions = versions }
}

// Clocks sets the clock of the i-th machine before anything runs there. By default all clocks are
// exact.
func Clocks(set func(i int, clock *Clock)) Option { return func(s *settings) { s.clocks = set } }

// Rejoin makes a member whose incarnation has ended, because it was expelled or stepped down after
// a split, begin another incarnation at the same address after pause, as node.Run does. The new
// incarnation is another Member with another actor system and id, in the same process. Each creates
// its components for every incarnation, in the goroutine that begins the incarnation; a component
// that can be rebound, such as a Replicator, is the same in every incarnation. By default the
// member stays removed.
func Rejoin(pause time.Duration) Option {
	return func(s *settings) { s.rejoin, s.pause = true, pause }
}

// Provider makes every member discover the others by itself, as Proto.Actor's providers do. It
// looks for all others every round, and drops those that have been frozen or unreachable, in either
// direction, for the duration silence. It never lists a dropped id again, whatever Member.Lists
// says. By default members list the members that the cluster reports to them.
func Provider(round, silence time.Duration) Option {
	return func(s *settings) { s.provider = &simnet.Provider{Round: round, Silence: silence} }
}

// Leases configures the sessions of the members. The cluster sets Owner, Logger and Clock.
func Leases(cfg coordination.Config) Option { return func(s *settings) { s.leases = cfg } }

// LeaseStore makes the session of each member use the store that wrap returns instead of the
// member's Store. It shows how code behaves with a store of fewer abilities, which embedding
// selects:
//
//	testkit.LeaseStore(func(s *testkit.Store) leasestore.Store {
//		return struct { // keeps no session records, makes no batches
//			leasestore.Store
//			leasestore.Watcher
//		}{s, s}
//	})
func LeaseStore(wrap func(s *Store) leasestore.Store) Option {
	return func(s *settings) { s.store = wrap }
}

// Bubble runs test on virtual time like synctest.Test, and then ends the bubble so that actor
// systems can be used in it: it waits, for up to a virtual hour, for goroutines that still sleep,
// such as the one that a dead letter leaves behind. A goroutine that stays fails the test.
//
// Virtual time stands still while a goroutine of the test runs. If it stands still for a minute of
// real time, or until shortly before the timeout of the test binary, the binary ends with a panic
// that names the goroutine: an actor that sends messages to itself without end, for example, or
// code that waits for something outside the bubble. Bubble observes the first virtual day so.
//
// The test must not call t.Run, t.Parallel or t.Deadline, which panic in a bubble. Call Bubble in
// subtests instead.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	w := guard(t)
	defer w.stop()
	synctest.Test(t, func(t *testing.T) {
		w.enter()
		t.Cleanup(func() { w.leave(t) })
		test(t)
	})
}

// Run runs test on virtual time with a cluster of n running members that see each other. At the end
// of the test the cluster is healed, and its members and then their actors are stopped in order. If
// the test fails, Run prints the seed, the changes made to the cluster, and the warnings and errors
// of the members.
//
// The test fails if a message was sent to another member that remoting could not carry.
func Run(t *testing.T, n int, test func(t *testing.T, c *Cluster), options ...Option) {
	t.Helper()
	s := settings{seed: 1, latency: time.Millisecond,
		store: func(s *Store) leasestore.Store { return s }}
	for _, o := range options {
		o(&s)
	}
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		s.seed = seed
	}
	Bubble(t, func(t *testing.T) {
		c := newCluster(t, n, s)
		defer c.end()
		c.Ready()
		test(t, c)
	})
}
