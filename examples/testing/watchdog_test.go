package watchdog

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/testkit"
)

// This test runs one actor. Probes stand in for its partner and its owner, and ten seconds of
// silence take no time.
func TestWatchdog_TellsOfASilentPartner(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		partner, owner := testkit.NewProbe(t, system), testkit.NewProbe(t, system)
		dog := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &Watchdog{Partner: partner.PID(), Owner: owner.PID()}
		}))
		defer system.Root.Stop(dog)

		testkit.Expect[*emptypb.Empty](partner)
		owner.Within(10*time.Second, func() {
			require.Equal(t, 6*time.Second, testkit.Expect[*Lost](owner).After)
		})
		owner.ExpectNone(time.Minute) // it reports only once

		partner.Send(dog, &emptypb.Empty{})
		testkit.Expect[*Found](owner)
	})
}

// This test runs two members. Messages cross a network that the test cuts and heals, and an hour
// passes in milliseconds.
func TestWatchdog_BothSidesNoticeAPartition(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		owners := testkit.Each(c, func(m *testkit.Member) (*testkit.Probe, error) {
			owner, other := testkit.NewProbe(t, m.System), c.Member(1-m.Index).Address
			_, err := m.System.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor {
				return &Watchdog{Partner: actor.NewPID(other, "dog"), Owner: owner.PID()}
			}), "dog")
			return owner, err
		})
		owners.At(0).ExpectNone(time.Hour)
		c.Cut(0, 1)
		c.Advance(10 * time.Second)
		for _, m := range c.Members() {
			testkit.Expect[*Lost](owners.Of(m))
		}
		c.Heal()
		for _, m := range c.Members() {
			testkit.Expect[*Found](owners.Of(m))
		}
	})
}
