//go:build linux

package healtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	upstream "github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/node/provider/etcd"
	"github.com/concord-go/concord/singleton"
)

const (
	memberPort   = 9000
	providerPort = 6400
	// round is the interval at which automanaged providers query their hosts.
	round = 500 * time.Millisecond
	// leaseTTL is the TTL of the singleton's lease and of etcd's provider.
	leaseTTL = 3 * time.Second
)

// Providers.
const (
	withAutomanaged = "automanaged"
	withEtcd        = "etcd"
	// Proto.Actor's automanaged, which drops a member after two seconds
	withProtoActor = "protoactor"
)

// spec configures a member process; the driver passes it in the environment.
type spec struct {
	Name      string // of this process; a process that replaces a killed one has another
	Host      string
	Hosts     []string // of all members
	Provider  string
	Etcd      string // address of the etcd server, if that is the provider
	LeaseDir  string // shared by all
	Instances string // file in which instances of the singleton record their activity
	Leases    string // leases in addition to the singleton's
	Secret    string
	TLS       *node.TLS
	Silent    string        // while this file exists, the lease store does not answer
	Outages   bool          // a member with default settings, for TestOutage
	Chaos     bool          // a member with default settings and accounts
	Data      string        // its directory; empty: the data is only in memory
	Rounds    time.Duration // between two rounds of its questions

	StopTimeout time.Duration // of node.Run
}

// command is a line on standard input.
type command struct{ Do string } // quiet or dump

// report is a line on standard output, with one of its fields set.
type report struct {
	Status    *status    `json:",omitempty"` // every statusInterval
	Acked     *acked     `json:",omitempty"` // added to the set at Majority
	Answered  *answered  `json:",omitempty"` // by the singleton
	Round     *questions `json:",omitempty"` // of questions, by a member of TestOutage
	Deposited *deposited `json:",omitempty"` // to an account
	Dump      []string   `json:",omitempty"` // the set
	Quiet     bool       `json:",omitempty"` // the load has ended, and its counts are final
}

const statusInterval = 100 * time.Millisecond

// status is a snapshot of a member. Times are of the boot clock, which all processes share.
type status struct {
	At          time.Duration
	Incarnation int
	NotReady    string            `json:",omitempty"` // reason, from node.Health
	IDs         []string          // of the members in view, sorted
	Addrs       []string          // of the same members
	Sum         uint64            // the common counter
	By          map[string]uint64 // each process's adds to it
	Set         int               // elements of the set
	Added       uint64            // by this process, acknowledged
	Maybe       uint64            // by this process, with an unknown outcome
	Faulty      uint64            // alarms of the replicator
	Routines    int               // goroutines of the process
	Asked       time.Duration     // when the latest answered request to the singleton was sent
	// of the latest failed request, if that was later
	AskErr string `json:",omitempty"`
}

// member is a member process.
type member struct {
	spec
	health      node.Health
	incarnation atomic.Int64
	system      atomic.Pointer[node.Node] // of the latest incarnation
	dd          atomic.Pointer[distributeddata.Replicator]
	worker      atomic.Pointer[singleton.Singleton]
	load        load
	quiet       chan struct{} // closed when the load must end

	out struct {
		sync.Mutex
		*json.Encoder
	}
}

// runMember is the main function of a member process.
func runMember(text string, in io.Reader, out io.Writer) int {
	m := &member{quiet: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &m.spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	m.out.Encoder = json.NewEncoder(out)
	if m.Outages {
		go m.serve(in)
		return m.runOutages()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var working sync.WaitGroup
	m.work(&working)
	go m.serve(in)
	cfg := node.RunConfig{
		Cluster: "heal",
		Remote: node.Config{Host: m.Host, Port: memberPort, SecretFile: m.Secret, TLS: m.TLS,
			PlaintextUnsafe: true},
		Provider:    m.provider,
		Store:       m.store,
		Session:     leases,
		MinMembers:  1,
		Logger:      log,
		Health:      &m.health,
		StopTimeout: m.StopTimeout,
	}
	if m.Leases == withGuard {
		cfg.Session, cfg.Guard = longLeases, "guard/"+m.Host
	}
	register := m.register
	if m.Chaos {
		d := &depositing{member: m, made: make(chan struct{})}
		rows, err := d.configure(&cfg)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		if rows != nil {
			defer rows.Close()
		}
		register = d.register
		working.Go(d.depositAll)
	}
	var strangers sync.WaitGroup
	forging, stop := context.WithCancel(context.Background())
	if m.Secret != "" || m.TLS != nil {
		strangers.Go(func() { m.forge(forging, log) })
	}
	err := node.Run(context.Background(), cfg, register)
	stop()
	strangers.Wait()
	m.stopLoad()
	working.Wait()
	m.say(report{Status: m.status()})
	m.say(report{Quiet: true})
	if err != nil {
		log.Error("member ended", slog.Any("error", err))
	}
	return node.ExitCode(err)
}

// leases are configured as in the quickstart.
var leases = coordination.Config{
	TTL: leaseTTL, RenewInterval: 900 * time.Millisecond, OperationTimeout: 300 * time.Millisecond,
	RetryInterval: 200 * time.Millisecond, Drain: 300 * time.Millisecond,
}

func (m *member) provider() (cluster.ClusterProvider, error) {
	switch m.Provider {
	case withEtcd:
		return etcd.New(etcd.Config{Client: clientv3.Config{Endpoints: []string{m.Etcd}},
			TTL: leaseTTL})()
	case withProtoActor:
		return upstream.NewWithConfig(round, providerPort, m.providers()...), nil
	}
	return automanaged.New(automanaged.Config{
		Port: providerPort, Hosts: m.providers(), Refresh: round,
	})()
}

// defaultProvider is a provider with the default of every setting.
func (m *member) defaultProvider() (cluster.ClusterProvider, error) {
	return automanaged.New(automanaged.Config{Port: providerPort, Hosts: m.providers()})()
}

// providers returns the addresses of the providers of all members.
func (m *member) providers() (hosts []string) {
	for _, h := range m.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s:%d", h, providerPort))
	}
	return hosts
}

// register creates the components of an incarnation.
func (m *member) register(n *node.Node) error {
	m.incarnation.Store(int64(n.Incarnation))
	m.system.Store(n)
	dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: len(m.Hosts)/2 + 1})
	if err != nil {
		return err
	}
	m.dd.Store(dd)
	worker, err := singleton.New(n.System, n.Session, singleton.Config{Name: "worker"}, m.produce)
	if err != nil {
		return err
	}
	m.worker.Store(worker)
	return nil
}

// serve executes commands until the driver exits.
func (m *member) serve(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			break
		}
		switch c.Do {
		case "quiet":
			m.stopLoad()
		case "dump":
			m.say(report{Dump: append(m.elements(), "")}) // never empty
		}
	}
	os.Exit(1)
}

func (m *member) say(r report) {
	m.out.Lock()
	defer m.out.Unlock()
	_ = m.out.Encode(r) // the end of the input reveals that the driver has exited
}

func (m *member) status() *status {
	s := &status{At: bootTime(), Routines: runtime.NumGoroutine(),
		Incarnation: int(m.incarnation.Load()), By: map[string]uint64{}}
	if err := m.health.Ready(); err != nil {
		s.NotReady = err.Error()
	}
	if n := m.system.Load(); n != nil {
		if members, ok := membership.Lookup(n.System); ok {
			if v := members.View(); v != nil {
				for _, x := range v.Members {
					s.IDs, s.Addrs = append(s.IDs, x.ID), append(s.Addrs, x.Address)
				}
			}
		}
	}
	if dd := m.dd.Load(); dd != nil {
		m.read(dd, s)
	}
	m.load.fill(s)
	return s
}
