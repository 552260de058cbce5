package testkit

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/simnet"
)

// SeedVariable is the environment variable that replaces the seed of every Run.
const SeedVariable = "TESTKIT_SEED"

// Option of Run.
type Option func(*settings)

type settings struct {
	seed            uint64
	latency, jitter time.Duration
	roles           func(i int) []string
	leases          coordination.Config
	clocks          func(i int, clock *Clock)
	rejoin          bool
	pause           time.Duration
	provider        *simnet.Provider
}

// Seed sets the seed of all pseudo-random numbers of the network. Default 1.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// Latency sets the time every message takes, and a random addition below jitter, in whatever order keeps
// theirs. Default 1ms, without jitter.
func Latency(latency, jitter time.Duration) Option {
	return func(s *settings) { s.latency, s.jitter = latency, jitter }
}

// Roles sets the roles that the i-th member announces. Default: none.
func Roles(roles func(i int) []string) Option { return func(s *settings) { s.roles = roles } }

// Clocks sets the clock of the i-th machine before anything runs there. Default: all are right.
func Clocks(set func(i int, clock *Clock)) Option { return func(s *settings) { s.clocks = set } }

// Rejoin lets a member whose life has ended, since it was expelled or gave way after a split, begin another one at
// the same address after pause, as node.Run does: another Member, with another actor system and id, in the
// same process. Each makes its components for every life, in the goroutine that begins it; a component that
// can be bound again, such as a Replicator, is the same in every life. Default: the member stays removed.
func Rejoin(pause time.Duration) Option {
	return func(s *settings) { s.rejoin, s.pause = true, pause }
}

// Provider lets every member find out by itself who is there, as Proto.Actor's providers do: it looks for all
// others every round, and drops those that are out of reach, in either direction, or frozen, for as long as
// silence. It never lists an id again that it has dropped, whatever Member.Lists says. Default: members list
// whom the cluster tells them.
func Provider(round, silence time.Duration) Option {
	return func(s *settings) { s.provider = &simnet.Provider{Round: round, Silence: silence} }
}

// Leases configures the sessions of the members. Owner, Logger and Clock are set by the cluster.
func Leases(cfg coordination.Config) Option { return func(s *settings) { s.leases = cfg } }

// Bubble runs test on virtual time, as synctest.Test does, and ends the bubble so that actor systems may
// live in it: a dead letter leaves a goroutine behind that must end first.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	simnet.Bubble(t, test)
}

// Run runs test on virtual time with a cluster of n members that are up and see each other. The cluster
// ends with the test: its members are healed and stopped in order, then their actors. When the test
// fails, the seed is printed with what was done to the cluster, and warnings and errors of the members.
//
// The test fails if a message was sent to another member that remoting could not carry.
func Run(t *testing.T, n int, test func(t *testing.T, c *Cluster), options ...Option) {
	t.Helper()
	s := settings{seed: 1, latency: time.Millisecond}
	for _, o := range options {
		o(&s)
	}
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", SeedVariable, err)
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
