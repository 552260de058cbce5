package hostile_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/singleton"
)

const memberEnv = "CONCORD_HOSTILE_MEMBER"

// spec configures a member process.
type spec struct {
	Cluster      string
	Advertised   string
	Port, Health int
	Healths      []string
	LeaseDir     string
	Instances    string // records of the singleton's instances
	TLS          *node.TLS
	Secret       string
}

// status is a member's answer to a line on its standard input.
type status struct {
	N           int
	Ordinal     int // of the incarnation, from 1
	Self        string
	IDs         []string // of the members that it sees
	Incarnation uint64
	Stamp       uint64
	Host        string // of the singleton; "": not known
	Added       string // why an update at a majority failed; "": it did not
	Sum         uint64
	Door        int // messages that the actor "door" has got
	DoorStarted int
	Failures    []string // of actors, Proto.Actor's own included
	Grain       string   // the activation of a virtual actor
	Asked       string   // why a question to the singleton failed; "": it did not
	Goroutines  int
	Heap        uint64 // after a garbage collection
	Refusals    map[string]uint64
}

var counter = distributeddata.NewKey("counter", crdt.GCounter{})

// leases are short enough to wait for their end, and long enough for a busy machine.
var leases = coordination.Config{
	TTL: 10 * time.Second, RenewInterval: 3 * time.Second, OperationTimeout: time.Second,
	RetryInterval: 200 * time.Millisecond, Drain: 300 * time.Millisecond,
}

// door is a user actor that messages may reach.
type door struct{ got, started int }

func (d *door) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		d.started++
	case *actor.Stopping, *actor.Stopped, *actor.Restarting:
	case chan [2]int:
		ctx.Message().(chan [2]int) <- [2]int{d.got, d.started}
	default:
		d.got++
	}
}

// grain is a kind of virtual actors.
var grain = cluster.NewKind("grain", actor.PropsFromFunc(func(actor.Context) {}))

// runMember is the main function of a member. It answers each line of its standard input.
func runMember(raw string) int {
	var s spec
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &incarnation{}
	go func() {
		for n, in := 1, bufio.NewScanner(os.Stdin); in.Scan(); n++ {
			line, _ := json.Marshal(m.command(ctx, n, in.Text()))
			fmt.Println(string(line))
		}
		stop()
	}()
	err := node.Run(ctx, node.RunConfig{
		Cluster: s.Cluster,
		Remote: node.Config{Port: s.Port, Advertised: s.Advertised, TLS: s.TLS,
			SecretFile: s.Secret, Public: []string{"door"}},
		Provider: automanaged.New(automanaged.Config{
			Port: s.Health, Hosts: s.Healths, Refresh: 200 * time.Millisecond, DropAfter: patience,
		}),
		Store:      func() (coordination.Store, error) { return file.Open(s.LeaseDir) },
		Session:    leases,
		MinMembers: 3,
		Options:    []cluster.ConfigOption{cluster.WithKinds(grain)},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelWarn})),
	}, func(n *node.Node) error { return m.register(n, s) })
	return node.ExitCode(err)
}

// incarnation is the present one of the member.
type incarnation struct {
	mu     sync.Mutex
	node   *node.Node
	dd     *distributeddata.Replicator
	single *singleton.Singleton
	door   *actor.PID

	failed struct {
		sync.Mutex
		all []string
	}
}

func (l *incarnation) register(n *node.Node, s spec) error {
	dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 3})
	if err != nil {
		return err
	}
	single, err := singleton.New(n.System, n.Session, singleton.Config{Name: "jobs", MinMembers: 3},
		instances(s))
	if err != nil {
		return err
	}
	n.System.EventStream.Subscribe(l.fails)
	d := &door{}
	pid, err := n.System.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor {
		return d
	}), "door")
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node, l.dd, l.single, l.door = n, dd, single, pid
	return nil
}

// fails records the failures of actors.
func (l *incarnation) fails(event any) {
	if e, ok := event.(*actor.SupervisorEvent); ok {
		l.failed.Lock()
		defer l.failed.Unlock()
		l.failed.all = append(l.failed.all, fmt.Sprint(e.Child.Id, ": ", e.Reason))
	}
}

// instances record their starts and stops in one file for all members: with O_APPEND each line is
// written as a whole.
func instances(s spec) func(coordination.Tenure) actor.Actor {
	note := func(what string, t coordination.Tenure) {
		f, err := os.OpenFile(s.Instances, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err == nil {
			_, _ = fmt.Fprintf(f, "%s %d %d\n", what, s.Port, t.Token())
			_ = f.Close()
		}
	}
	return func(t coordination.Tenure) actor.Actor {
		var held []func()
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				note("start", t)
			case *actor.Stopped:
				note("stop", t)
			case *wrapperspb.StringValue:
				answer(ctx, ctx.Message().(*wrapperspb.StringValue), &held)
			}
		})
	}
}

// Beginnings of questions to the singleton.
const (
	hold    = "hold "    // is not answered now
	release = "release " // is answered after everything that was held, which stays held
)

// answer answers a question after a moment, in which others can try to.
func answer(ctx actor.Context, m *wrapperspb.StringValue, held *[]func()) {
	root, to := ctx.ActorSystem().Root, ctx.Sender()
	reply := func() { root.Send(to, wrapperspb.String("re: "+m.Value)) }
	switch {
	case strings.HasPrefix(m.Value, hold):
		*held = append(*held, reply)
	case strings.HasPrefix(m.Value, release):
		for _, f := range *held {
			f()
		}
		time.AfterFunc(20*time.Millisecond, reply)
	default:
		time.AfterFunc(100*time.Millisecond, reply)
	}
}

// ask asks the singleton.
func (l *incarnation) ask(ctx context.Context, question string) error {
	answer, err := singleton.As[*wrapperspb.StringValue](l.single.Ask(ctx,
		wrapperspb.String(question)))
	if err == nil && answer.Value != "re: "+question {
		err = fmt.Errorf("the answer to %q is %v", question, answer)
	}
	return err
}

// ready reports whether the member has registered its components.
func (l *incarnation) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.single != nil
}

// hold asks n questions that are held, and waits for no answer.
func (l *incarnation) hold(ctx context.Context, n int) {
	for i := range n {
		go func() { _ = l.ask(ctx, fmt.Sprint(hold, i)) }()
	}
}

// release asks n questions, one after the other, and returns what was wrong with the answers.
func (l *incarnation) release(ctx context.Context, n int) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range n {
		if err := l.ask(ctx, fmt.Sprint(release, i)); err != nil {
			return err.Error()
		}
	}
	return ""
}

// command carries out a line of the standard input.
func (l *incarnation) command(ctx context.Context, n int, line string) status {
	word, arg, _ := strings.Cut(line, " ")
	count, _ := strconv.Atoi(arg)
	switch {
	case !l.ready():
		return status{N: n}
	case word == "hold":
		l.hold(ctx, count)
		return status{N: n}
	case word == "release":
		return status{N: n, Ordinal: 1, Asked: l.release(ctx, count)}
	}
	return l.status(ctx, n)
}

func (l *incarnation) status(ctx context.Context, n int) (s status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.N = n
	if l.node == nil {
		return s
	}
	s.Ordinal, s.Refusals = l.node.Incarnation, node.Refusals()
	if v := membership.Attach(l.node.System).View(); v != nil {
		s.Self, s.Incarnation, s.Stamp = v.Self.ID, v.Self.Incarnation, v.Self.Stamp
		for _, m := range v.ByAge("") {
			s.IDs = append(s.IDs, m.ID)
		}
	}
	if at, ok := l.single.Where(); ok {
		s.Host = at.Address
	}
	try, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := counter.Update(try, l.dd, func(w *crdt.Writer, c *crdt.GCounter) error {
		c.Add(w, 1)
		return nil
	},
		distributeddata.Majority)
	if err != nil {
		s.Added = err.Error()
	}
	s.Sum = v.Value()
	if err := l.ask(try, fmt.Sprint(s.Self, n)); err != nil {
		s.Asked = err.Error()
	}
	got := make(chan [2]int, 1)
	l.node.System.Root.Send(l.door, got)
	select {
	case d := <-got:
		s.Door, s.DoorStarted = d[0], d[1]
	case <-time.After(5 * time.Second):
		s.DoorStarted = -1
	}
	if pid := l.node.Cluster.Get("one", grain.Kind); pid != nil {
		s.Grain = pid.String()
	}
	l.failed.Lock()
	s.Failures = l.failed.all
	l.failed.Unlock()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s.Goroutines, s.Heap = runtime.NumGoroutine(), mem.HeapAlloc
	return s
}
