package testkit

import "github.com/asynkron/protoactor-go/cluster"

// Grains adds kinds of virtual actors, or none, to a member that no other member lists yet, and
// sets up the identity lookup that finds them. Call it in the function that is passed to Each, in a
// cluster that begins without members, and then Join:
//
//	testkit.Run(t, 0, func(t *testing.T, c *testkit.Cluster) {
//		clusters := testkit.Each(c, func(m *testkit.Member) (*cluster.Cluster, error) {
//			lookup, err := grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 2})
//			if err != nil {
//				return nil, err
//			}
//			return m.Grains(lookup, kinds...), nil
//		})
//		for range 3 {
//			c.Join()
//		}
//		…
//		clusters.At(0).Request("ann", "Account", &Deposit{Amount: 10})
//	})
//
// Get, Request, RequestFuture and generated clients work on the result. Its other methods and
// fields do not: there is no remoting, gossip or MemberList.
func (m *Member) Grains(lookup cluster.IdentityLookup, kinds ...*cluster.Kind) *cluster.Cluster {
	return m.sim.Grains(lookup, kinds...)
}
