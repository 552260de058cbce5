package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/concord-go/concord/internal/membership"
)

// Cluster returns a cluster configuration with the settings that Concord recommends: Proto.Actor's
// gossip disabled as far as possible, and its only identity lookup, disthash. That may run a
// virtual actor twice; see package sharding/grains for another one. More options are applied on
// top.
//
// No cluster name may be a prefix of another cluster's name on the same provider: with some
// providers, "shop" sees the members of "shop2".
func Cluster(name string, provider cluster.ClusterProvider, rc *remote.Config,
	options ...cluster.ConfigOption) *cluster.Config {
	options = append([]cluster.ConfigOption{withoutGossip()}, options...)
	return cluster.Configure(name, provider, disthash.New(), rc, options...)
}

// never stands in for infinity: Proto.Actor's gossip loop does not accept zero.
const never = 100 * 365 * 24 * time.Hour

// withoutGossip makes Proto.Actor's gossip idle; it cannot be turned off. Concord does not use
// gossip, and most data races of Proto.Actor are in it. The gossip heartbeats must then never
// expire either: with a long interval alone, the second round finds the heartbeat of every member
// expired and bans all members.
func withoutGossip() cluster.ConfigOption {
	return func(c *cluster.Config) {
		c.GossipInterval = never
		c.HeartbeatExpiration = 2 * never
	}
}

// Roles announces roles to the other members. The only thing Proto.Actor tells members about each
// other is which kinds of virtual actors they run, so each role is announced as a kind named
// "role." plus the role. An activation of such a kind stops itself. Start checks the names; see
// Config.Roles.
func Roles(roles ...string) cluster.ConfigOption {
	return func(c *cluster.Config) {
		for _, r := range roles {
			announce(c, membership.RolePrefix+r)
		}
	}
}

// AppVersion announces the version of the application to the other members, in the way of Roles: as
// a kind named "version." plus the version. "" announces none. Start checks the version; see
// Config.AppVersion.
func AppVersion(version string) cluster.ConfigOption {
	return func(c *cluster.Config) {
		if version != "" {
			announce(c, membership.VersionPrefix+version)
		}
	}
}

// announce adds a kind whose activations stop themselves.
func announce(c *cluster.Config, kind string) {
	k := cluster.NewKind(kind, actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			ctx.Stop(ctx.Self())
		}
	}))
	cluster.WithKinds(k)(c)
}
