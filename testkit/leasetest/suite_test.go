package leasetest_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/rpc"
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // handlers that panic are logged
	goleak.VerifyTestMain(m)
}

// server is a store behind a network, like a third-party backend.
type server struct{ store memory.Store }

// Call and Reply are sent over the network. Outcomes are encoded as words, since errors cannot be
// sent.
type (
	Call struct {
		Name string
		Old  leasestore.Version
		Next leasestore.Record
	}
	Reply struct {
		Record  leasestore.Record
		Version leasestore.Version
		Outcome string
	}
)

func (s *server) Load(c Call, r *Reply) (err error) {
	r.Record, r.Version, err = s.store.Load(context.Background(), c.Name)
	return err
}

func (s *server) Swap(c Call, r *Reply) (err error) {
	r.Version, err = s.store.Swap(context.Background(), c.Name, c.Old, c.Next)
	if errors.Is(err, leasestore.ErrConflict) {
		r.Outcome, err = "conflict", nil
	}
	return err
}

// client is the Store for the server. It has its own connection and goroutine.
type client struct{ *rpc.Client }

func (c client) call(ctx context.Context, method string, in Call) (r Reply, err error) {
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	call := c.Go("server."+method, in, &r, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return r, call.Error
	case <-ctx.Done():
		return Reply{}, ctx.Err() // the reply may still arrive, so it is not used
	}
}

func (c client) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	r, err := c.call(ctx, "Load", Call{Name: name})
	return r.Record, r.Version, err
}

func (c client) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	r, err := c.call(ctx, "Swap", Call{name, old, next})
	if r.Outcome == "conflict" {
		return "", leasestore.ErrConflict
	}
	return r.Version, err
}

// TestOutside runs the suite in virtual time on a store behind a real connection.
func TestOutside(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		s := rpc.NewServer()
		if err := s.RegisterName("server", &server{memory.New()}); err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.ServeConn(far) }()
		c := client{rpc.NewClient(near)}
		t.Cleanup(func() { _ = c.Close(); <-done })
		return c
	}, leasetest.Options{Outside: true})
}
