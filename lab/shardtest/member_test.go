package shardtest_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/lab/internal/listing"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

const memberEnv = "CONCORD_SHARDING_MEMBER"

// TestMain runs a member instead of the tests if the driver started this process.
func TestMain(m *testing.M) {
	if text := os.Getenv(memberEnv); text != "" {
		if err := runMember(text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// spec configures a process at its start.
type spec struct {
	Name   string
	Host   string
	Port   int
	Dir    string // contains the leases and the files of entities
	Shards int
	Away   string        // while this file exists, the lease store does not answer; or Away-Name
	Old    bool          // a version of the application without the type and the singleton
	Role   string        // of this version, which the type and the singleton need; empty: none
	Stop   time.Duration // its StopTimeout; 0: patience
	Waits  bool          // it runs until its clerk has returned
	// Data is the directory of a durable store for the ids of remembered entities; empty: entities
	// are not remembered.
	Data string
}

// command is a command of the driver: a line on standard input.
type command struct {
	List     []listing.Member // list these members
	Send     int              // send this many messages to each entity
	Entities int
	Deliver  bool          // deliver them, each entity's by its own goroutine
	Active   bool          // report how many shards are active here
	Clerk    time.Duration // ask the singleton where it is, and wait so long for the answer
	Block    bool          // let the instance block, until the driver writes a file
}

// answer is a line on standard output.
type answer struct {
	Here   *listing.Member
	Ready  bool
	Sent   bool
	Active *int
	Clerk  bool
	At     string // the member that has answered for the singleton
	Err    string
}

// member is a process of the cluster.
type member struct {
	spec
	provider *listing.Provider
	region   atomic.Pointer[sharding.Region[proto.Message]]
	clerk    atomic.Pointer[singleton.Singleton]
	out      struct {
		sync.Mutex
		*json.Encoder
	}
}

// ttl of the leases.
const ttl = 6 * time.Second

// runMember runs until the end of the input, and then leaves in order.
func runMember(text string, in io.Reader, out io.Writer) error {
	m := &member{}
	m.out.Encoder = json.NewEncoder(out)
	m.provider = &listing.Provider{Here: func(own listing.Member) { m.say(answer{Here: &own}) }}
	if err := json.Unmarshal([]byte(text), &m.spec); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		if err := m.serve(in); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if m.Waits {
		defer m.released()
	}
	return node.Run(ctx, node.RunConfig{
		Cluster: "real", Remote: node.Config{Host: m.Host, Port: m.Port, PlaintextUnsafe: true,
			Roles: roles(m.Role)},
		Provider: func() (cluster.ClusterProvider, error) { return m.provider, nil },
		Store:    m.store, MinMembers: 2,
		Session: coordination.Config{Owner: m.Name, TTL: ttl},
		// the driver lists each process once
		StartTimeout: patience, StopTimeout: cmp.Or(m.Stop, patience), OnSplit: node.Exit,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelWarn})),
	}, m.register)
}

func (m *member) store() (leasestore.Store, error) {
	s, err := file.Open(filepath.Join(m.Dir, "leases"))
	return outage{s, m.Away, m.Away + "-" + m.Name}, err
}

// outage is the file store, which does not answer while one of two files exists.
type outage struct {
	file.Store
	away, own string
}

func (s outage) wait(ctx context.Context) error {
	for {
		if !exists(s.away) && !exists(s.own) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Load implements leasestore.Store.
func (s outage) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	if err := s.wait(ctx); err != nil {
		return leasestore.Record{}, "", err
	}
	return s.Store.Load(ctx, name)
}

// Swap implements leasestore.Store.
func (s outage) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := s.wait(ctx); err != nil {
		return "", err
	}
	return s.Store.Swap(ctx, name, old, next)
}

func (m *member) say(a answer) {
	m.out.Lock()
	defer m.out.Unlock()
	_ = m.out.Encode(a) // the end of the input reveals that the driver has exited
}

func (m *member) register(n *node.Node) error {
	cfg := distributeddata.Config{MinMembers: 3, HeartbeatInterval: 200 * time.Millisecond}
	if m.Data != "" {
		rows, err := bbolt.Open(m.Data, bbolt.Config{})
		if err != nil {
			return err
		}
		cfg.Store, cfg.Durable = rows, []string{sharding.RememberedKeys("log")}
		cfg.Member = filepath.Base(m.Data)
	}
	data, err := distributeddata.New(n.System, cfg)
	if err != nil {
		return err
	}
	if !m.Old {
		if err := m.hosts(n, data); err != nil {
			return err
		}
	}
	n.Go(func(context.Context) error {
		m.say(answer{Ready: true})
		return nil
	})
	return nil
}

// hosts makes the type and the singleton.
func (m *member) hosts(n *node.Node, data *distributeddata.Replicator) error {
	least := 3
	if m.Role != "" {
		least = 1
	}
	region, err := sharding.New[proto.Message](n.System, n.Session, data,
		sharding.Config{Type: "log", Role: m.Role, Shards: m.Shards, MinMembers: least,
			StableAfter: time.Second, Remember: m.Data != ""},
		func(e sharding.Entity) actor.Actor { return &log{Entity: e, dir: m.Dir, at: m.Name} })
	if err != nil {
		return err
	}
	m.region.Store(region)
	clerk, err := singleton.New(n.System, n.Session, singleton.Config{Name: "clerk", Role: m.Role,
		MinMembers: least},
		func(t coordination.Tenure) actor.Actor { return &clerkActor{t, m} })
	m.clerk.Store(clerk)
	return err
}

// clerkActor is the instance of the singleton. It answers with the name of its member, and writes
// when it has started.
type clerkActor struct {
	coordination.Tenure
	m *member
}

func (a *clerkActor) Receive(c actor.Context) {
	switch text := c.Message().(type) {
	case *actor.Started:
		a.m.note("started", time.Now())
	case *wrapperspb.StringValue:
		if text.Value == "block" {
			a.m.note("blocks", time.Now())
			a.block()
		}
		c.Respond(wrapperspb.String(a.m.Name))
	}
}

// block blocks until the driver releases it, and writes when the lease was last held.
func (a *clerkActor) block() {
	held := time.Now()
	for ; !exists(a.m.release()); time.Sleep(5 * time.Millisecond) {
		if a.Check() == nil {
			held = time.Now()
		}
	}
	a.m.note("held", held)
}

// release is the path of a file that lets instances return.
func (m *member) release() string { return filepath.Join(m.Dir, "release") }

// released waits until the driver lets instances return, and a moment longer.
func (m *member) released() {
	for !exists(m.release()) {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
}

// note appends an event of the singleton to a file.
func (m *member) note(what string, at time.Time) {
	f, err := os.OpenFile(filepath.Join(m.Dir, "clerk"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, m.Name, what, at.UnixNano())
	}
	if err != nil {
		panic(err)
	}
	_ = f.Close()
}

func roles(role string) []string {
	if role == "" {
		return nil
	}
	return []string{role}
}

// ask asks the singleton.
func (m *member) ask(within time.Duration) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	a.Clerk = true
	at, err := singleton.As[*wrapperspb.StringValue](m.clerk.Load().Ask(ctx,
		wrapperspb.String("where?")))
	if err != nil {
		a.Err = err.Error()
		return a
	}
	a.At = at.Value
	return a
}

// serve executes commands until the end of the input.
func (m *member) serve(in io.Reader) error {
	sent := 0
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var do command
		if err := json.Unmarshal(lines.Bytes(), &do); err != nil {
			return err
		}
		switch {
		case do.List != nil:
			m.provider.List(do.List)
		case do.Deliver:
			from := sent
			go func() { m.say(m.deliver(from, do)) }()
			sent += do.Send
		case do.Send > 0:
			m.say(m.send(sent, do))
			sent += do.Send
		case do.Active:
			n := m.region.Load().Status().Count(sharding.Active)
			m.say(answer{Active: &n})
		case do.Clerk > 0:
			m.say(m.ask(do.Clerk))
		case do.Block:
			m.provider.Cluster.ActorSystem.Root.Send(m.clerk.Load().PID(),
				wrapperspb.String("block"))
		}
	}
	return nil
}

// send sends numbered messages to every entity, slowly enough to take a while.
func (m *member) send(from int, do command) answer {
	for k := range do.Send {
		for e := range do.Entities {
			err := m.region.Load().Ref(fmt.Sprint("e", e)).Tell(
				wrapperspb.String(fmt.Sprintf("%s %d", m.Name, from+k)))
			if err != nil {
				return answer{Sent: true, Err: err.Error()}
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return answer{Sent: true}
}

// deliver delivers numbered messages to every entity.
func (m *member) deliver(from int, do command) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs := make(chan error, do.Entities)
	for e := range do.Entities {
		go func() {
			for k := range do.Send {
				if err := m.region.Load().Ref(fmt.Sprint("e", e)).Deliver(ctx,
					wrapperspb.String(fmt.Sprintf("%s %d", m.Name, from+k))); err != nil {
					errs <- err
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			errs <- nil
		}()
	}
	a := answer{Sent: true}
	for range do.Entities {
		if err := <-errs; err != nil {
			a.Err = err.Error()
		}
	}
	return a
}

// log is the entity: it writes the messages it handles to a file, with its token and its member.
type log struct {
	sharding.Entity
	dir, at string
	file    *os.File
}

func (l *log) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		var err error
		if l.file, err = os.OpenFile(filepath.Join(l.dir, l.ID),
			os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			panic(err)
		}
	case *actor.Stopped:
		_ = l.file.Close()
	case *wrapperspb.StringValue:
		if _, err := fmt.Fprintf(l.file, "%d %s %s\n", l.Token(), l.at, m.Value); err != nil {
			panic(err)
		}
	}
}
