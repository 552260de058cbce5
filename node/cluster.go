package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/concord-go/concord/internal/membership"
)

// Cluster returns a cluster configuration with what Concord recommends: Proto.Actor's gossip at rest
// (WithoutGossip), and its only identity lookup. More options are applied on top.
//
// No name may be the beginning of another cluster's on the same provider: "shop" sees the members of "shop2"
// with some of them.
func Cluster(name string, provider cluster.ClusterProvider, rc *remote.Config, options ...cluster.ConfigOption) *cluster.Config {
	options = append([]cluster.ConfigOption{WithoutGossip()}, options...)
	return cluster.Configure(name, provider, disthash.New(), rc, options...)
}

// never is as good as that; Proto.Actor's gossip loop does not take zero.
const never = 100 * 365 * 24 * time.Hour

// WithoutGossip lets Proto.Actor's gossip rest; it cannot be turned off. Concord does not use it, and it is
// where most data races of Proto.Actor are. Its heartbeats must then never expire either: with a long
// interval alone, the second round finds every member's heartbeat expired and bans them all.
func WithoutGossip() cluster.ConfigOption {
	return func(c *cluster.Config) {
		c.GossipInterval = never
		c.HeartbeatExpiration = 2 * never
	}
}

// Roles announces roles to the other members. Proto.Actor tells members nothing of each other but the kinds
// of virtual actors they run, so each role is a kind of its own, "role." and the name. An
// activation of such a kind stops itself. Start checks the names; see Config.Roles.
func Roles(roles ...string) cluster.ConfigOption {
	return func(c *cluster.Config) {
		for _, r := range roles {
			k := cluster.NewKind(membership.RolePrefix+r, actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					ctx.Stop(ctx.Self())
				}
			}))
			cluster.WithKinds(k)(c)
		}
	}
}
