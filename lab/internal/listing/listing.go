// Package listing is a provider of clusters whose members a test lists.
package listing

import (
	"github.com/asynkron/protoactor-go/cluster"
)

// Member is a member as the provider lists it.
type Member struct {
	ID, Host string
	Port     int
	Kinds    []string
}

// Provider is the provider of one member.
type Provider struct {
	Here    func(Member) // called when the member listens
	Cluster *cluster.Cluster
}

// StartMember implements cluster.ClusterProvider.
func (p *Provider) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	if err == nil {
		p.Cluster = c
		p.Here(Member{c.ActorSystem.ID, host, port, c.GetClusterKinds()})
	}
	return err
}

// StartClient implements cluster.ClusterProvider.
func (*Provider) StartClient(*cluster.Cluster) error { return nil }

// Shutdown implements cluster.ClusterProvider.
func (*Provider) Shutdown(bool) error { return nil }

// List replaces the members of the cluster. The member must listen.
func (p *Provider) List(all []Member) {
	var members cluster.Members
	for _, m := range all {
		members = append(members, &cluster.Member{Id: m.ID, Host: m.Host, Port: int32(m.Port),
			Kinds: m.Kinds})
	}
	p.Cluster.MemberList.UpdateClusterTopology(members)
}
