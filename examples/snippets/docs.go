package snippets

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
)

// Durable is of docs/durability.md.
func Durable(system *actor.ActorSystem, use func(*distributeddata.Replicator) error) (err error) {
	// a directory for this member only
	rows, err := badger.Open("/var/lib/shop/ddata", badger.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }() // after the member has stopped

	dd, err := distributeddata.New(system, distributeddata.Config{
		MinMembers: 3,
		Member:     "shop-0", // the member comes back under this name, at any address
		Durable:    []string{"cart-*", "stock"},
		Store:      rows,
	})
	if err != nil {
		return err
	}
	return use(dd)
}

// Autoscaled is of docs/operations.md.
func Autoscaled(n *node.Node) (*distributeddata.Replicator, error) {
	members, err := n.Document("shop.members") // or Provider.Document, coordination.NewDocument
	if err != nil {
		return nil, err
	}
	return distributeddata.New(n.System, distributeddata.Config{Membership: members})
}

// Command and the rest are of docs/sharding.md.
type (
	Command = *wrapperspb.StringValue
	account struct {
		sharding.Entity // ID, Type, Shard, and the tenure: Check, Token, Context
		balance         int
	}
	indexer struct{ sharding.Entity }
)

// Receive implements actor.Actor.
func (a *account) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started: // load what earlier incarnations have stored
	case Command:
		if a.Check() != nil { // the lease of the shard is lost: no effect, no answer
			return
		}
		if m.GetValue() == "deposit 10" {
			a.balance += 10 // store it, with a.Token(), if it must survive
		}
		c.Respond(wrapperspb.Int64(int64(a.balance)))
	}
}

func (i *indexer) Receive(actor.Context) {}

// Sharded is of docs/sharding.md.
func Sharded(ctx context.Context, system *actor.ActorSystem, session *coordination.Session,
	data *distributeddata.Replicator) (*wrapperspb.Int64Value, error) {
	accounts, err := sharding.New[Command](system, session, data, sharding.Config{Type: "account"},
		func(e sharding.Entity) actor.Actor { return &account{Entity: e} })
	if err != nil {
		return nil, err
	}
	if err := accounts.Ref("ann").Tell(wrapperspb.String("deposit 10")); err != nil {
		return nil, err
	}
	return sharding.As[*wrapperspb.Int64Value](accounts.Ref("ann").Ask(ctx,
		wrapperspb.String("balance")))
}

// Workers is of docs/sharding.md.
func Workers(system *actor.ActorSystem, session *coordination.Session,
	data *distributeddata.Replicator) (any, error) {
	return sharding.NewDaemons[Command](system, session, data,
		sharding.Config{Type: "indexer", Shards: 12},
		func(e sharding.Entity) actor.Actor { return &indexer{Entity: e} })
}

// Secured are the settings of docs/security.md.
func Secured() []node.Config {
	withTLS := node.Config{Host: "10.0.0.1", Port: 7000, TLS: node.TLSFiles("member.pem",
		"member-key.pem", "ca.pem")}
	withSecret := node.Config{Host: "10.0.0.1", Port: 7000, SecretFile: "/etc/shop/secret"}
	withPublic := node.Config{Public: []string{"orders", "carts"}}
	// messages a second from each peer; a KiB counts as one more
	withRate := node.Config{MaxRate: 20_000}
	return []node.Config{withTLS, withSecret, withPublic, withRate}
}
