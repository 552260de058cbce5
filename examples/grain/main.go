// Command grain keeps an account consistent although Proto.Actor activates it twice. East and west
// are members of one cluster that do not see each other, as in a partition, so both activate the
// account.
//
//	go run ./examples/grain
//
//	east activates ann: 10 paid in, balance 10, token 1
//	west activates ann too, and waits for the lease
//	east leaves, and ann stops there
//	west: 20 paid in, balance 30, token 2
//	the bank refuses token 1 after token 2
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/grain"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/node"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// bank is the database of all members. It rejects writes from earlier tenures.
type bank struct {
	mu       sync.Mutex
	balance  map[string]int64
	accepted map[string]coordination.Token
}

var errOld = errors.New("the token is of an earlier tenure")

func (b *bank) payIn(account string, token coordination.Token, amount int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token < b.accepted[account] {
		return 0, errOld
	}
	b.accepted[account] = token
	b.balance[account] += amount
	return b.balance[account], nil
}

// account is a grain that receives amounts.
type account struct {
	name   string
	tenure coordination.Tenure
	bank   *bank
}

// Receive implements actor.Actor.
func (a *account) Receive(ctx actor.Context) {
	amount, ok := ctx.Message().(*wrapperspb.Int64Value)
	if !ok || a.tenure.Check() != nil {
		return
	}
	balance, err := a.bank.payIn(a.name, a.tenure.Token(), amount.Value)
	if err != nil {
		ctx.Respond(wrapperspb.String(err.Error()))
		return
	}
	ctx.Respond(wrapperspb.String(fmt.Sprintf("%d paid in, balance %d, token %v", amount.Value,
		balance, a.tenure.Token())))
}

// alone is a cluster provider that finds no other members.
type alone struct{}

// StartMember implements cluster.ClusterProvider.
func (alone) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return err
	}
	me := &cluster.Member{Id: c.ActorSystem.ID, Host: host, Port: int32(port),
		Kinds: c.GetClusterKinds()}
	c.MemberList.UpdateClusterTopology(cluster.Members{me})
	return nil
}

// StartClient implements cluster.ClusterProvider.
func (alone) StartClient(*cluster.Cluster) error { return errors.ErrUnsupported }

// Shutdown implements cluster.ClusterProvider.
func (alone) Shutdown(bool) error { return nil }

// member is one side of the partition.
type member struct {
	cluster *cluster.Cluster
	session *coordination.Session
}

func start(store coordination.Store, b *bank) (*member, error) {
	session, err := coordination.Open(store, coordination.Config{TTL: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	accounts, err := grain.NewKind("account", session, grain.Config{},
		func(id *cluster.ClusterIdentity, t coordination.Tenure) actor.Actor {
			return &account{name: id.Identity, tenure: t, bank: b}
		})
	if err != nil {
		return nil, err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	c := cluster.New(system, node.Cluster("bank", alone{}, remote.Configure("127.0.0.1", 0),
		cluster.WithKinds(accounts)))
	c.StartMember()
	return &member{c, session}, nil
}

// leave stops the member and releases the leases of its grains.
func (m *member) leave(ctx context.Context) error {
	m.cluster.Shutdown(true)
	return m.session.Close(ctx)
}

// payIn sends an amount to an account, and returns the answer.
func (m *member) payIn(name string, amount int64) (string, error) {
	res, err := m.cluster.ActorSystem.Root.RequestFuture(m.cluster.Get(name, "account"),
		wrapperspb.Int64(amount), 20*time.Second).Result()
	if err != nil {
		return "", err
	}
	return res.(*wrapperspb.StringValue).Value, nil
}

func run(ctx context.Context, out io.Writer) error {
	store, b := memory.New(), &bank{balance: map[string]int64{},
		accepted: map[string]coordination.Token{}}
	east, err := start(store, b)
	if err != nil {
		return err
	}
	west, err := start(store, b)
	if err != nil {
		return err
	}
	said, err := east.payIn("ann", 10)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "east activates ann:", said)

	answer, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		said, err := west.payIn("ann", 20)
		if err != nil {
			failed <- err
			return
		}
		answer <- said
	}()
	select {
	case said := <-answer:
		return fmt.Errorf("two activations work: %s", said)
	case err := <-failed:
		return err
	case <-time.After(time.Second):
		fmt.Fprintln(out, "west activates ann too, and waits for the lease")
	}

	fmt.Fprintln(out, "east leaves, and ann stops there")
	if err := east.leave(ctx); err != nil {
		return err
	}
	select {
	case said := <-answer:
		fmt.Fprintln(out, "west:", said)
	case err := <-failed:
		return err
	}
	if _, err := b.payIn("ann", 1, 10); errors.Is(err, errOld) {
		fmt.Fprintln(out, "the bank refuses token 1 after token 2")
	}
	return west.leave(ctx)
}
