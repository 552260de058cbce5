//go:build linux

package graintest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/protobuf/protoc-gen-go-grain/test/hello"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/grains"
)

const memberEnv = "CONCORD_GRAINS_MEMBER"

// The ports of a member, and the TTL of its leases.
const (
	memberPort   = 9000
	providerPort = 6400
	ttl          = 4 * time.Second
)

// spec configures a process at its start.
type spec struct {
	Name       string
	Host       string
	Hosts      []string
	Dir        string // the lease store
	Disthash   bool
	Callers    int
	Identities int
	MinMembers int
}

// command is a line on standard input.
type command struct {
	Sweep bool // call every grain until it answers
	Stop  bool // leave in order
}

// report is a line on standard output.
type report struct {
	Up      bool      `json:",omitempty"`
	Handled []handled `json:",omitempty"`
	Swept   *swept    `json:",omitempty"`
	Calls   *calls    `json:",omitempty"`
}

// handled is a message that an activation has handled, while its lease was held if it has one.
type handled struct {
	Grain      string
	Activation string
	At         int64 // before the check
}

type swept struct{ Worst, Whole time.Duration }

type calls struct{ Done, Failed int64 }

// member is a process.
type member struct {
	spec
	cluster      atomic.Pointer[cluster.Cluster]
	done, failed atomic.Int64
	activations  atomic.Int64

	book struct {
		sync.Mutex
		handled []handled
	}
	out struct {
		sync.Mutex
		*json.Encoder
	}
}

func runMember(text string, in io.Reader, out io.Writer) int {
	m := &member{}
	m.out.Encoder = json.NewEncoder(out)
	if err := json.Unmarshal([]byte(text), &m.spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := context.WithCancel(context.Background())
	go m.serve(in, stop)
	go m.tell(ctx)
	cfg := node.RunConfig{
		Cluster:  "grains",
		Remote:   node.Config{Host: m.Host, Port: memberPort, PlaintextUnsafe: true},
		Provider: m.provider, MinMembers: m.MinMembers,
		Store: func() (coordination.Store, error) {
			return file.Open(filepath.Join(m.Dir, "leases"))
		},
		Session: coordination.Config{TTL: ttl},
		Options: []cluster.ConfigOption{cluster.WithKinds(hello.NewHelloKind(
			func() hello.Hello { return &grain{m: m} }, 0)),
			cluster.WithRequestTimeout(2 * time.Second)},
		Lookup: m.lookup,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level()})),
	}
	err := node.Run(ctx, cfg, m.register)
	m.flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return node.ExitCode(err)
}

// level hides Proto.Actor's line at ERROR for each request that is tried again.
func level() slog.Level {
	if os.Getenv("CONCORD_LOG") != "" {
		return slog.LevelInfo
	}
	return slog.LevelError + 1
}

func (m *member) provider() (cluster.ClusterProvider, error) {
	var hosts []string
	for _, h := range m.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s:%d", h, providerPort))
	}
	return automanaged.New(automanaged.Config{Port: providerPort, Hosts: hosts,
		Refresh: 500 * time.Millisecond, DropAfter: 2 * time.Second})()
}

func (m *member) lookup(n *node.Node) (cluster.IdentityLookup, error) {
	if m.Disthash {
		return disthash.New(), nil
	}
	return grains.New(n.System, grains.Config{Session: n.Session, Timeout: 2 * time.Second,
		MinMembers: m.MinMembers, Sharding: sharding.Config{StableAfter: time.Second}})
}

func (m *member) register(n *node.Node) error {
	n.Go(func(ctx context.Context) error {
		m.cluster.Store(n.Cluster)
		m.say(report{Up: true})
		var callers sync.WaitGroup
		for range m.Callers {
			callers.Go(func() { m.call(ctx, n.Cluster) })
		}
		callers.Wait()
		return nil
	})
	return nil
}

// call calls grains, one after the other.
func (m *member) call(ctx context.Context, c *cluster.Cluster) {
	for ctx.Err() == nil {
		if m.ask(c, rand.IntN(m.Identities)) == nil {
			m.done.Add(1)
		} else {
			m.failed.Add(1)
		}
		select {
		case <-time.After(100*time.Millisecond + rand.N(200*time.Millisecond)):
		case <-ctx.Done():
		}
	}
}

func (m *member) ask(c *cluster.Cluster, grain int) error {
	_, err := hello.GetHelloGrainClient(c, fmt.Sprint("g", grain)).SayHello(&emptypb.Empty{})
	return err
}

// sweepWithin bounds a sweep.
const sweepWithin = time.Minute

// sweep calls every grain until it answers.
func (m *member) sweep() {
	var worst atomic.Int64
	begun := time.Now()
	turns := make(chan struct{}, 500)
	var all sync.WaitGroup
	for grain := range m.Identities {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			err := m.ask(m.cluster.Load(), grain)
			for ; err != nil && time.Since(begun) < sweepWithin; err = m.ask(m.cluster.Load(),
				grain) {
				time.Sleep(20 * time.Millisecond)
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "grain %d does not answer: %v\n", grain, err)
			}
			for took := int64(time.Since(begun)); ; {
				last := worst.Load()
				if took <= last || worst.CompareAndSwap(last, took) {
					return
				}
			}
		})
	}
	all.Wait()
	m.say(report{Swept: &swept{time.Duration(worst.Load()), time.Since(begun)}})
}

func (m *member) serve(in io.Reader, stop func()) {
	defer stop()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var do command
		if err := json.Unmarshal(lines.Bytes(), &do); err != nil || do.Stop {
			return
		}
		if do.Sweep {
			go m.sweep()
		}
	}
}

func (m *member) say(r report) {
	m.out.Lock()
	defer m.out.Unlock()
	_ = m.out.Encode(r) // the end of the input reveals that the driver has exited
}

// tell reports what the grains have handled.
func (m *member) tell(ctx context.Context) {
	for ctx.Err() == nil {
		m.flush()
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *member) flush() {
	m.book.Lock()
	batch := m.book.handled
	m.book.handled = nil
	m.book.Unlock()
	m.say(report{Handled: batch, Calls: &calls{m.done.Load(), m.failed.Load()}})
}

// grain is a virtual actor, called by generated code.
type grain struct {
	m          *member
	activation string
}

// Init implements hello.Hello.
func (g *grain) Init(cluster.GrainContext) {
	g.activation = fmt.Sprint(g.m.Name, "-", g.m.activations.Add(1))
}

// Terminate implements hello.Hello.
func (g *grain) Terminate(cluster.GrainContext) {}

// ReceiveDefault implements hello.Hello.
func (g *grain) ReceiveDefault(cluster.GrainContext) {}

// SayHello implements hello.Hello.
func (g *grain) SayHello(_ *emptypb.Empty,
	ctx cluster.GrainContext) (*hello.SayHelloResponse, error) {
	at := time.Now().UnixNano()
	if e, ok := sharding.Self(ctx); ok && e.Check() != nil {
		return nil, e.Check()
	}
	g.m.book.Lock()
	g.m.book.handled = append(g.m.book.handled, handled{ctx.Identity(), g.activation, at})
	g.m.book.Unlock()
	return &hello.SayHelloResponse{Message: g.activation}, nil
}
