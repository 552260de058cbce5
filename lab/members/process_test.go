package members

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/internal/races"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const childEnv = "CONCORD_NODE_TEST"

// patience bounds the wait for every expected event, however busy the machine is.
const patience = time.Minute

// TestMain runs a member instead of the tests in the processes that the tests start.
func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		os.Exit(member(spec))
	}
	if scenario := os.Getenv(runEnv); scenario != "" {
		runChild(scenario)
	}
	goleak.VerifyTestMain(m)
}

// spec configures a member process.
type spec struct {
	Port, Health int
	Hosts        []string // health addresses of all
	Roles        []string
	TLS          *node.TLS
	Secret       string // name of its file
}

// report is one line of a member process.
type report struct {
	Event  string
	Ages   []string // ids by age
	Addrs  []string // addresses by age
	Hash   uint64
	Text   string
	Backed []string // with role backend
}

// member is the main function of a member process. After "stop" and an orderly shutdown, the exit
// status is 0.
func member(arg string) int {
	var mu sync.Mutex
	say := func(r report) {
		line, _ := json.Marshal(r)
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(string(line))
	}
	var s spec
	if err := json.Unmarshal([]byte(arg), &s); err != nil {
		panic(err)
	}
	rc, err := node.Remote(node.Config{Port: s.Port, Roles: s.Roles, TLS: s.TLS,
		SecretFile: s.Secret, Public: []string{"watcher"}})
	if err != nil {
		panic(err)
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelError}))
	}))
	provider, err := automanaged.New(automanaged.Config{
		// unless it refuses connections
		Port: s.Health, Hosts: s.Hosts, Refresh: 200 * time.Millisecond, DropAfter: patience,
	})()
	if err != nil {
		panic(err)
	}
	c := cluster.New(system, node.Cluster("concord-test", provider, rc, node.Roles(s.Roles...)))

	members := membership.Attach(system)
	members.WhenUp(func(self membership.Member) {
		system.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) { //nolint:errcheck // the name is free
			switch m := ctx.Message().(type) {
			case *actor.Started:
				members.Subscribe(ctx.Self())
			case *membership.View:
				r := report{Event: "view", Hash: m.Hash}
				for _, a := range m.ByAge("") {
					r.Ages, r.Addrs = append(r.Ages, a.ID), append(r.Addrs, a.Address)
				}
				for _, a := range m.ByAge("backend") {
					r.Backed = append(r.Backed, a.ID)
				}
				say(r)
			case *wrapperspb.StringValue:
				say(report{Event: "got", Text: m.Value})
			case *actor.Stopping:
				say(report{Event: "watcher stopped"})
			case *actor.Restarting:
				say(report{Event: "watcher restarted"})
			}
		}), "watcher")
	})
	for _, p := range []lifecycle.Phase{lifecycle.Replicator, lifecycle.Leases,
		lifecycle.Singleton, lifecycle.Sharding} {
		_, err := lifecycle.OnStop(system, p, "test", func(context.Context) error {
			say(report{Event: "stopping", Text: p.String()})
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := node.Start(ctx, c); err != nil {
		say(report{Event: "failed", Text: err.Error()})
		err := node.Shutdown(ctx, c)
		say(report{Event: "shut down", Text: fmt.Sprint(err)})
		return 3
	}
	say(report{Event: "started", Text: members.View().Self.ID, Addrs: []string{
		members.View().Self.Address}})
	go func() {
		<-node.Removed(system)
		say(report{Event: "removed"})
	}()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // "stop", or the parent has exited
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := make(chan error, 1)
	go func() { again <- node.Shutdown(ctx, c) }()
	if err := node.Shutdown(ctx, c); err != nil {
		say(report{Event: "shutdown failed", Text: err.Error()})
		return 4
	}
	if err := <-again; err != nil {
		return 5
	}
	return 0
}

// process is a member process as seen by the test.
type process struct {
	*child.Process
	t *testing.T

	mu    sync.Mutex
	lines []report
}

func launch(t *testing.T, s spec) *process {
	t.Helper()
	arg, err := json.Marshal(s)
	require.NoError(t, err)
	p := &process{t: t}
	p.Process = child.Start(t, []string{childEnv + "=" + string(arg)}, func(line []byte) {
		var r report
		if json.Unmarshal(line, &r) == nil {
			p.mu.Lock()
			p.lines = append(p.lines, r)
			p.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		p.Kill()
		require.Empty(t, races.Reported(p.Stderr()))
		if t.Failed() {
			t.Logf("member on port %d, reports: %+v", s.Port, p.reports(""))
		}
	})
	return p
}

// reports returns the reports so far of one kind, or all if event is "".
func (p *process) reports(event string) (out []report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.lines {
		if event == "" || r.Event == event {
			out = append(out, r)
		}
	}
	return out
}

// view returns the latest view.
func (p *process) view() report {
	if v := p.reports("view"); len(v) > 0 {
		return v[len(v)-1]
	}
	return report{}
}

// stop stops the process in order and returns its exit code.
func (p *process) stop() int {
	_ = p.Say("stop")
	return p.ExitCode()
}

// specs returns the specs of n members that know each other.
func specs(t *testing.T, n int) []spec {
	free := ports.Free(t, 2*n)
	out := make([]spec, n)
	var hosts []string
	for i := range n {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", free[n+i]))
		out[i] = spec{Port: free[i], Health: free[n+i], Roles: []string{"backend"}}
	}
	for i := range out {
		out[i].Hosts = hosts
	}
	out[0].Roles = nil
	return out
}

// started waits for the member, and returns its address.
func (p *process) started() (address string) {
	p.t.Helper()
	p.waits("the member starts", func() bool { return len(p.reports("started")) > 0 })
	return p.reports("started")[0].Addrs[0]
}

// waits waits until ok returns true, and fails if the process exits first.
func (p *process) waits(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		require.False(p.t, p.Ended(), "%s: the process has ended", what)
		require.True(p.t, time.Now().Before(deadline), "%s: not after %v", what, patience)
	}
}

// agreed waits until all given processes have the same view of as many members, each with a stamp.
func agreed(t *testing.T, ps ...*process) (v report) {
	t.Helper()
	differs := func(p *process) bool {
		o := p.view()
		return len(o.Ages) != len(ps) || o.Hash != v.Hash || !slices.Equal(o.Ages, v.Ages)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		v = ps[0].view()
		if !slices.ContainsFunc(ps, differs) {
			return v
		}
		require.False(t, slices.ContainsFunc(ps, func(p *process) bool {
			return p.Ended()
		}), "a member has ended")
		require.True(t, time.Now().Before(deadline), "members do not agree after %v", patience)
	}
}

func TestThreeProcesses(t *testing.T) {
	s := specs(t, 3)
	a, b, c := launch(t, s[0]), launch(t, s[1]), launch(t, s[2])
	v := agreed(t, a, b, c)
	require.Len(t, v.Backed, 2, "roles arrive")

	// After a kill, the others detect it, and the next process on the address is the youngest.
	b.Kill()
	agreed(t, a, c)
	b2 := launch(t, s[1])
	v = agreed(t, a, b2, c)
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d", s[1].Port), v.Addrs[2])

	// An orderly stop.
	require.Zero(t, b2.stop())
	var phases []string
	for _, r := range b2.reports("stopping") {
		phases = append(phases, r.Text)
	}
	require.Equal(t, []string{"sharding", "singleton", "leases", "replicator"}, phases)
	agreed(t, a, c)
	for _, p := range []*process{a, b2, c} {
		require.Empty(t, p.reports("removed"))
	}
}

func TestStartReturnsWhatProtoActorPanicsWith(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s := specs(t, 1)[0]
	s.Port = l.Addr().(*net.TCPAddr).Port
	p := launch(t, s)
	require.Equal(t, 3, p.ExitCode())
	require.Contains(t, p.reports("failed")[0].Text, node.ErrStart.Error())
	require.Contains(t, p.reports("failed")[0].Text, "address already in use")
	require.Equal(t, "<nil>", p.reports("shut down")[0].Text)
}
