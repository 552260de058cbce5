package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// nodeConfig is the configuration that the driver passes to a node process in its environment.
type nodeConfig struct {
	Name      string   `json:"name"`
	Port      int      `json:"port"`      // the same after a restart
	Provider  int      `json:"provider"`  // port of the provider's HTTP endpoint
	Providers []string `json:"providers"` // of all nodes
	// Via maps the addresses of other nodes to links that the driver can cut.
	Via      map[string]string `json:"via"`
	LeaseDir string            `json:"lease_dir"`          // shared by the nodes of this machine
	DataDir  string            `json:"data_dir,omitempty"` // of this node only; empty: in memory
	Verbose  bool              `json:"verbose"`
	Nodes    int               `json:"nodes"`
	TLS      *node.TLS         `json:"tls,omitempty"`
	// Cockpits are the ports of the cockpits of all nodes, this one's first; empty: there is none.
	Cockpits []int `json:"cockpits,omitempty"`
}

// command is a request of the driver to a node, a line of JSON on its standard input.
type command struct {
	N     uint64    `json:"n"`
	Event *numbered `json:"event,omitempty"`
	Ask   string    `json:"ask,omitempty"` // status, dump or stop
}

// answer is a node's reply, a line of JSON on its standard output. The answer with N = 0 means that
// the node is ready.
type answer struct {
	N      uint64  `json:"n"`
	Err    string  `json:"err,omitempty"`
	Number int64   `json:"number,omitempty"` // of the checked-out order
	Status *status `json:"status,omitempty"`
	Dump   *result `json:"dump,omitempty"`
}

// status is the status of a node.
type status struct {
	Address string `json:"address"`
	Clerk   string `json:"clerk"` // address of the node that hosts the clerk, as known to this node
	Token   uint64 `json:"token"`
	Nodes   int    `json:"nodes"` // nodes visible to this one, including itself
	Keys    int    `json:"keys"`
	Bytes   uint64 `json:"bytes"`
}

// A short lease makes the clerk return soon after its node was killed. Use the defaults on a real
// network, and for work that takes long to stop.
var leases = coordination.Config{
	TTL: 3 * time.Second, RenewInterval: 900 * time.Millisecond,
	OperationTimeout: 300 * time.Millisecond,
	RetryInterval:    200 * time.Millisecond, Drain: 300 * time.Millisecond,
}

// member holds the components of this process. Its handles stay the same in every incarnation of
// the node.
type member struct {
	cfg   nodeConfig
	dd    *distributeddata.Replicator
	carts *sharding.Region[cartMessage]
	clerk *singleton.Singleton
	rows  store.Store      // nil: the data is only in memory
	ui    *cockpit.Handler // nil: there is none
	made  sync.Once
	up    chan struct{} // closed when the node becomes ready for the first time
}

// runNode is the main function of a node process: it serves the driver until the driver sends stop
// or exits.
func runNode(cfg nodeConfig, in io.Reader, out io.Writer) (err error) {
	m := &member{cfg: cfg, up: make(chan struct{})}
	if cfg.DataDir != "" {
		rows, err := badger.Open(cfg.DataDir, badger.Config{Logger: cfg.logger()})
		if err != nil {
			return err
		}
		m.rows = rows
		defer func() { err = errors.Join(err, rows.Close()) }() // after the node has stopped
	}
	health, logger := new(node.Health), cfg.logger()
	if len(cfg.Cockpits) > 0 {
		closeUI, err := m.openCockpit(health)
		if err != nil {
			return err
		}
		defer closeUI()
		logger = slog.New(m.ui.Log(logger.Handler()))
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		m.serve(in, out)
		stop()
	}()
	return node.Run(ctx, node.RunConfig{
		Health:  health,
		Cluster: "quickstart",
		Remote:  node.Config{Port: cfg.Port, TLS: cfg.TLS},
		Provider: automanaged.New(automanaged.Config{
			Port: cfg.Provider, Hosts: cfg.Providers, Refresh: 200 * time.Millisecond,
			DropAfter: 2 * time.Second,
		}),
		Store:      func() (coordination.Store, error) { return file.Open(cfg.LeaseDir) },
		Session:    leases,
		MinMembers: cfg.Nodes,
		Logger:     logger,
		Remoting: []remote.ConfigOption{
			remote.WithDialOptions(grpc.WithContextDialer(dialer(cfg.Via)))},
	}, m.register)
}

// register creates the components of one incarnation of the node. It is called again when the node
// rejoins after a split, and New then returns the existing components.
func (m *member) register(n *node.Node) error {
	var cfg distributeddata.Config
	if m.rows != nil {
		cfg.Member = m.cfg.Name // its name when it comes back
		cfg.Store, cfg.Durable = m.rows, []string{"*"}
	}
	dd, err := distributeddata.New(n.System, cfg)
	if err != nil {
		return err
	}
	carts, err := sharding.New[cartMessage](n.System, n.Session, dd,
		sharding.Config{Type: "cart", Shards: 48, MinMembers: m.cfg.Nodes, HandOff: 2 * patience,
			External: true, StableAfter: 2 * time.Second}, // the cockpit can move shards
		newCart(dd))
	if err != nil {
		return err
	}
	clerk, err := singleton.New(n.System, n.Session,
		singleton.Config{Name: "clerk", MinMembers: m.cfg.Nodes}, newClerk(dd))
	if err != nil {
		return err
	}
	if m.ui != nil {
		if err := m.show(n, dd, carts, clerk); err != nil {
			return err
		}
	}
	n.Go(func(ctx context.Context) error {
		if err := dd.Ready(ctx); err != nil {
			return err
		}
		m.made.Do(func() { m.dd, m.carts, m.clerk = dd, carts, clerk; close(m.up) })
		return nil
	})
	return nil
}

func (cfg nodeConfig) logger() *slog.Logger {
	if !cfg.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With(slog.String("node", cfg.Name))
}

// serve handles commands, each in its own goroutine, until stop or the end of the input.
func (m *member) serve(in io.Reader, out io.Writer) {
	var mu sync.Mutex
	write := json.NewEncoder(out)
	reply := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		_ = write.Encode(a) // if the driver has exited, the input ends
	}
	go func() {
		<-m.up
		reply(answer{})
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 2*maxLine)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			reply(answer{Err: err.Error()})
			continue
		}
		if c.Ask == "stop" {
			return
		}
		go func() { reply(m.do(c)) }()
	}
}

func (m *member) do(c command) answer {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	a := answer{N: c.N}
	var err error
	<-m.up // the driver waits for it, too
	switch {
	case c.Ask == "status":
		a.Status = m.status()
	case c.Ask == "dump":
		a.Dump, err = m.dump(ctx)
	case c.Event == nil:
		err = fmt.Errorf("unknown command %q", c.Ask)
	case c.Event.Op == "checkout":
		a.Number, err = m.checkout(ctx, c.Event.ID)
	default:
		err = tellCart(ctx, m.carts, *c.Event)
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// checkout asks the clerk, at any node, for the number of an order.
func (m *member) checkout(ctx context.Context, id string) (int64, error) {
	n, err := singleton.As[*wrapperspb.Int64Value](m.clerk.Ask(ctx, wrapperspb.String(id)))
	return n.GetValue(), err
}

func (m *member) status() *status {
	s := m.dd.Status()
	place, _ := m.clerk.Where()
	return &status{Address: s.Address, Nodes: s.Members, Clerk: place.Address,
		Token: uint64(place.Token), Keys: s.Keys, Bytes: s.Traffic().Bytes}
}

func (m *member) dump(ctx context.Context) (*result, error) {
	all, err := readCarts(m.dd)
	if err != nil {
		return nil, err
	}
	book, err := readBook(ctx, m.dd)
	return &result{Carts: all, Orders: book}, err
}
