package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// Members is the number of members that are replaced. One more runs the clients.
const members = 5

// Counters that the clients increase at a majority.
var (
	volatileKey = distributeddata.NewKey("volatile", crdt.PNCounter{})
	durableKey  = distributeddata.NewKey("durable/count", crdt.PNCounter{})
)

const memberEnv = "CONCORD_ROLL_MEMBER"

// spec configures a member. All builds must be able to read it.
type spec struct {
	Name    string
	Port    int      // of remoting
	Listing int      // port of the provider
	Probe   int      // port of /readyz
	Hosts   []string // of the provider, all members
	Dir     string   // leases, durable data, records of what was handled
	Version string   // of the application
	Client  bool     // it hosts neither entities nor the singleton
	Level   slog.Level
}

// member is a running member.
type member struct {
	spec
	dd     *distributeddata.Replicator
	region *sharding.Region[*wrapperspb.StringValue]
	clerk  *singleton.Singleton
	health node.Health
	ready  chan struct{}
	handled
}

// runMember is the main function of a member process, which ends with its standard input too.
func runMember(text string) error {
	m := &member{ready: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &m.spec); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return m.run(ctx)
}

// run runs the member until ctx ends, or until SIGTERM if it is not the clients'.
func (m *member) run(ctx context.Context) (err error) {
	if m.File, err = create(filepath.Join(m.Dir, "handled", m.Name)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	rows, err := bbolt.Open(filepath.Join(m.Dir, m.Name), bbolt.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", m.Probe))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: &m.health, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	remote := node.Config{Port: m.Port, AppVersion: m.Version, Roles: []string{"server"}}
	if m.Client {
		remote.Roles = nil
	}
	return node.Run(ctx, node.RunConfig{
		Cluster: "roll", Remote: remote, NoSignals: m.Client, Health: &m.health,
		Provider: automanaged.New(automanaged.Config{Port: m.Listing, Hosts: m.Hosts,
			Refresh: 200 * time.Millisecond}),
		Store: func() (coordination.Store, error) {
			return file.Open(filepath.Join(m.Dir, "leases"))
		},
		Session:    coordination.Config{Owner: m.Name},
		MinMembers: members/2 + 1,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: m.Level})).With("member", m.Name),
	}, func(n *node.Node) error { return m.register(n, rows) })
}

func (m *member) register(n *node.Node, rows store.Store) (err error) {
	if m.dd, err = distributeddata.New(n.System, distributeddata.Config{Member: m.Name,
		MinMembers: members, Durable: []string{"durable/*"}, Store: rows}); err != nil {
		return err
	}
	newest := m.Version != ""
	if m.region, err = sharding.New[*wrapperspb.StringValue](n.System, n.Session, m.dd,
		sharding.Config{Type: "entity", Role: "server", Shards: 64, MinMembers: members},
		func(sharding.Entity) actor.Actor { return &worker{m} }); err != nil {
		return err
	}
	clerk := singleton.Config{Name: "clerk", Role: "server", PreferNewest: newest}
	if m.Client {
		m.clerk, err = singleton.NewProxy(n.System, clerk)
	} else {
		m.clerk, err = singleton.New(n.System, n.Session, clerk,
			func(coordination.Tenure) actor.Actor { return &worker{m} })
	}
	if err == nil && n.Incarnation == 1 {
		n.Go(func(context.Context) error { close(m.ready); return nil })
	}
	return err
}

// worker is the actor of an entity, and of the singleton: it records a request and answers it.
type worker struct{ m *member }

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	if r, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		w.m.note(r.Value)
		ctx.Respond(wrapperspb.String(w.m.Name))
	}
}

// handled is the record of the requests that a member has handled. It survives the process.
type handled struct {
	*os.File
	failed atomic.Pointer[error]
}

var records atomic.Int64

// create creates a record beside the earlier ones of the same member.
func create(name string) (*os.File, error) {
	return os.Create(fmt.Sprint(name, ".", os.Getpid(), ".", records.Add(1)))
}

func (h *handled) note(request string) {
	if _, err := fmt.Fprintln(h.File, request); err != nil {
		h.failed.Store(&err)
	}
}

// end returns the error of a record that is not whole.
func (h *handled) end() error {
	err := h.Close()
	if failed := h.failed.Load(); failed != nil {
		return cmp.Or(*failed, err)
	}
	return err
}
