package grain_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/grain"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// account adds up the amounts that are paid in.
type account struct {
	name    string
	tenure  coordination.Tenure
	balance int
}

func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case int:
		a.balance += m
		ctx.Respond(fmt.Sprintf("%s has %d under token %d", a.name, a.balance, a.tenure.Token()))
	case string:
		ctx.Stop(ctx.Self())
	}
}

// side is one member, or one side of a partition, which activates grains independently of the
// other.
type side struct {
	system  *actor.ActorSystem
	session *coordination.Session
	kind    *cluster.Kind
}

func newSide(t require.TestingT, store leasestore.Store) side {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	cluster.New(system, cluster.Configure("bank", nil, disthash.New(),
		remote.Configure("127.0.0.1", 0)))
	session, err := coordination.Open(store, coordination.Config{TTL: 2 * time.Second})
	require.NoError(t, err)
	kind, err := grain.NewKind("account", session, grain.Config{}, func(id *cluster.ClusterIdentity,
		t coordination.Tenure) actor.Actor {
		return &account{name: id.Identity, tenure: t}
	})
	require.NoError(t, err)
	return side{system, session, kind}
}

func (s side) activate(identity string) *actor.PID {
	return s.system.Root.Spawn(cluster.WithClusterIdentity(s.kind.Props, cluster.NewClusterIdentity(
		identity, s.kind.Kind)))
}

func (s side) ask(pid *actor.PID, within time.Duration) (string, error) {
	res, err := s.system.Root.RequestFuture(pid, 10, within).Result()
	if err != nil {
		return "", err
	}
	return res.(string), nil
}

// Proto.Actor activates a grain at two members that do not see each other. One works, and the other
// waits.
func TestKind_OfTwoActivationsOneWorks(t *testing.T) {
	store := memory.New()
	a, b := newSide(t, store), newSide(t, store)
	defer b.session.Close(context.Background())
	first := a.activate("ann")
	said, err := a.ask(first, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "ann has 10 under token 1", said)

	second := b.activate("ann")
	_, err = b.ask(second, 500*time.Millisecond)
	require.Error(t, err, "two activations work")
	other := b.activate("bob")
	said, err = b.ask(other, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "bob has 10 under token 1", said, "another grain")

	// the partition heals, and Proto.Actor ends one
	require.NoError(t, a.system.Root.PoisonFuture(first).Wait())
	said, err = b.ask(second, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "ann has 20 under token 2", said, "the message that was kept, and this one")
	require.NoError(t, a.session.Close(context.Background()))
}

// A worker that stops itself ends the activation: the next message activates the grain again.
func TestKind_AWorkerThatStopsEndsItsActivation(t *testing.T) {
	s := newSide(t, memory.New())
	defer s.session.Close(context.Background())
	pid := s.activate("ann")
	_, err := s.ask(pid, 10*time.Second)
	require.NoError(t, err)
	s.system.Root.Send(pid, "stop")
	require.Eventually(t, func() bool {
		_, there := s.system.ProcessRegistry.GetLocal(pid.Id)
		return !there
	}, 10*time.Second, 10*time.Millisecond)
	said, err := s.ask(s.activate("ann"), 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "ann has 10 under token 2", said)
}

func TestConfig_NamesOfLeases(t *testing.T) {
	name := func(identity string) string {
		return grain.Config{}.LeaseName(cluster.NewClusterIdentity(identity, "account"))
	}
	require.Equal(t, "grain/account/ann", name("ann"))
	long := strings.Repeat("x", leasestore.MaxName)
	require.Len(t, name(long), len("grain/#")+64)
	require.NotEqual(t, name(long), name(long+"x"))
	require.NotEqual(t, name("\xff"), name("\xfe"))
	for _, bad := range []grain.Config{{Buffer: -1}, {Buffer: 2_000_000}, {Prefix: "\xff"},
		{Prefix: long}} {
		require.ErrorIs(t, bad.Validate(), coordination.ErrInvalid)
	}
	_, err := grain.NewKind("account", nil, grain.Config{}, nil)
	require.ErrorIs(t, err, coordination.ErrInvalid)
}
