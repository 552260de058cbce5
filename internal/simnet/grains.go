package simnet

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/asynkron/protoactor-go/cluster"
	remoting "github.com/asynkron/protoactor-go/remote"
)

// Grains adds kinds of virtual actors to a process that nobody lists yet, and sets up the identity
// lookup that finds them. Get, Request and RequestFuture of the result work, and nothing else,
// since there is no remoting, gossip or MemberList.
func (m *Member) Grains(lookup cluster.IdentityLookup, kinds ...*cluster.Kind) *cluster.Cluster {
	c := cluster.New(m.System, cluster.Configure("simnet", noProvider{}, lookup,
		remoting.Configure("127.0.0.1", 0), cluster.WithKinds(kinds...)))
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
		activate(c, k)
	}
	m.Kinds = append(m.Kinds, names...)
	c.IdentityLookup = lookup
	lookup.Setup(c, names, false)
	return c
}

// activate adds a kind as StartMember does, which would listen on a port. There is no other way.
func activate(c *cluster.Cluster, k *cluster.Kind) {
	field := reflect.ValueOf(c).Elem().FieldByName("kinds")
	kinds := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
	kinds.SetMapIndex(reflect.ValueOf(k.Kind), reflect.ValueOf(k.Build(c)))
}

// noProvider is the provider of a cluster whose members the test lists.
type noProvider struct{}

func (noProvider) StartMember(*cluster.Cluster) error { return errors.ErrUnsupported }
func (noProvider) StartClient(*cluster.Cluster) error { return errors.ErrUnsupported }
func (noProvider) Shutdown(bool) error                { return nil }
