package acceptance

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit"
	"github.com/concord-go/concord/testkit/crdttest"
	"github.com/concord-go/concord/testkit/leasetest"
)

// mistake is a bug planted in a program or in its test.
type mistake struct {
	test func(t *testing.T)
	says []string // what the failure must say, in this order
	ends bool     // the test binary must end by itself, since nothing can stop the mistake
	slow bool     // the failure comes after a time limit, which the timeout of the binary shortens
	fine bool     // it is none any more: the test must pass
}

// mistakes by name. Each runs in a process of its own.
var mistakes = map[string]mistake{
	"an actor panics": {test: func(t *testing.T) {
		testkit.Bubble(t, func(t *testing.T) {
			system := testkit.NewSystem(t)
			probe := testkit.NewProbe(t, system)
			probe.Request(system.Root.Spawn(actor.PropsFromFunc(forgetful)), wrapperspb.String("x"))
			testkit.Expect[*text](probe)
		})
	}, says: []string{"expected *wrapperspb.StringValue, got nothing for 3s", "actor nonhost/$",
		"panicked: assignment to entry in nil map; in acceptance.forgetful at mistakes_test.go:",
		"its supervisor chose the RestartDirective"}},

	"an actor of another member panics": {test: func(t *testing.T) {
		testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
			_, err := c.Member(1).System.Root.SpawnNamed(actor.PropsFromFunc(forgetful), "cart")
			require.NoError(t, err)
			probe := testkit.NewProbe(t, c.Member(0).System)
			probe.Request(actor.NewPID(c.Member(1).Address, "cart"), wrapperspb.String("x"))
			testkit.Expect[*text](probe)
		})
	}, says: []string{"What was done to the cluster", "at m001: actor node-1:1/cart panicked: " +
		"assignment to entry in nil map; in acceptance.forgetful at mistakes_test.go:"}},

	"an actor answers with another value": {test: func(t *testing.T) {
		testkit.Bubble(t, func(t *testing.T) {
			system := testkit.NewSystem(t)
			probe := testkit.NewProbe(t, system)
			probe.Request(system.Root.Spawn(newCart(nil)), wrapperspb.String("milk"))
			testkit.Expect[*text](probe)
		})
	}, says: []string{"expected *wrapperspb.StringValue, got *wrapperspb.Int64Value{value:1}"}},

	"an actor never rests": {test: func(t *testing.T) {
		testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
			system := c.Member(0).System
			pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
				return &chatter{}
			}))
			system.Root.Send(pid, "go on")
			c.Settle()
		})
	}, ends: true, says: []string{"virtual time has stood still for",
		"acceptance.(*chatter).Receive"}},

	"an actor waits for a lock": {test: func(t *testing.T) {
		testkit.Bubble(t, func(t *testing.T) {
			system := testkit.NewSystem(t)
			pid := system.Root.Spawn(actor.PropsFromFunc(waiting))
			system.Root.Send(pid, wrapperspb.String("x"))
			time.Sleep(time.Second)
		})
	}, ends: true, says: []string{"virtual time has stood still for", "acceptance.waiting",
		"waits outside the bubble: chan receive"}},

	"an actor sleeps at the end": {test: func(t *testing.T) {
		testkit.Bubble(t, func(t *testing.T) {
			system := testkit.NewSystem(t)
			pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*text); ok {
					time.Sleep(time.Minute)
				}
			}))
			system.Root.Send(pid, wrapperspb.String("x"))
		})
	}, fine: true},

	"a goroutine never ends": {test: func(t *testing.T) {
		testkit.Bubble(t, func(t *testing.T) {
			go forever(make(chan int))
		})
	}, ends: true, says: []string{"a goroutine of the test has not ended: " +
		"acceptance.forever at mistakes_test.go:"}},

	"a message is no protobuf message": {test: func(t *testing.T) {
		testkit.Run(t, 2, func(_ *testing.T, c *testkit.Cluster) {
			c.Member(0).System.Root.Send(actor.NewPID(c.Member(1).Address, "x"), 7)
		})
	}, says: []string{"sent to another member, but no protobuf messages, so remoting would drop " +
		"them: [int]"}},

	"an actor works on after its lease": {test: func(t *testing.T) {
		_, end := testkit.Tenure(t, 7)
		one := testkit.Isolate(t, guarded(func() error { return nil }))
		end()
		one.Effects()
		one.Request(wrapperspb.String("milk"))
		one.ExpectNoEffect()
	}, says: []string{"expected no effect, got: sent *wrapperspb.StringValue"}},

	"a write does not wait for the quorum": {test: func(t *testing.T) {
		testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
			dd := replicated(c)
			c.Partition([]int{0}, []int{1, 2})
			c.Advance(time.Second)
			require.NoError(t, buy(dd.At(0), "milk", distributeddata.Majority))
		})
	}, says: []string{"0 of 2 replicas", "Ready"}},

	"a disk delays a commit beyond the end": {test: func(t *testing.T) {
		testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
			disk := c.Member(0).Disk()
			disk.Set(testkit.DiskFaults{Delay: 24 * time.Hour})
			s, err := disk.Open("carts")
			require.NoError(t, err)
			b := &store.Batch{}
			b.Put("cart", []byte("milk"))
			go func() { _ = s.Commit(context.Background(), b) }()
			c.Advance(time.Second)
		})
	}, fine: true},

	"a store ignores the version": {test: func(t *testing.T) {
		leasetest.Run(t, func(*testing.T) leasestore.Store {
			return careless{memory.New()}
		}, leasetest.Options{})
	}, says: []string{"S2_SwapComparesVersions"}},

	"a merge is not commutative": {test: func(t *testing.T) {
		crdttest.Run(t, crdttest.Type[planted[mine]]{Change: change[mine]})
	}, says: []string{"law ", " is broken: "}}, // 1 or 11

	"an encoding does not append": {test: func(t *testing.T) {
		crdttest.Run(t, crdttest.Type[planted[fresh]]{Change: change[fresh]})
	}, says: []string{"law 15 is broken", "AppendBinary does not append to the given slice"}},

	"a merge hangs": {test: func(t *testing.T) {
		crdttest.Run(t, crdttest.Type[planted[endless]]{Change: change[endless]})
	}, slow: true, says: []string{"does not return", "history:", "acceptance.endless.merge"}},
}

func forgetful(ctx actor.Context) {
	var counts map[string]int
	if m, ok := ctx.Message().(*text); ok {
		counts[m.Value]++ //nolint:staticcheck // the planted mistake
	}
}

// chatter sends itself a message for every one it gets.
type chatter struct{}

func (*chatter) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(string); ok {
		ctx.Send(ctx.Self(), m)
	}
}

// outside is a channel that does not belong to a bubble, as those of most libraries.
var outside = make(chan int)

func waiting(ctx actor.Context) {
	if _, ok := ctx.Message().(*text); ok {
		<-outside
	}
}

func forever(never chan int) { <-never }

type careless struct{ memory.Store }

func (c careless) Swap(ctx context.Context, name string, _ leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	_, now, err := c.Load(ctx, name)
	if err != nil {
		return "", err
	}
	return c.Store.Swap(ctx, name, now, next)
}

// planted is a peak with a bug.
type planted[B bug] struct{ n uint64 }

type bug interface {
	merge(a, b uint64) uint64
	appends(b []byte, n uint64) ([]byte, error)
}

func (p planted[B]) Merge(o planted[B]) planted[B] { return planted[B]{B.merge(*new(B), p.n, o.n)} }

func (p planted[B]) AppendBinary(b []byte) ([]byte, error) { return B.appends(*new(B), b, p.n) }

func (p planted[B]) Decode(b []byte) (planted[B], error) {
	n, err := decodePeak(b)
	return planted[B]{n}, err
}

func change[B bug](d *crdttest.Draw, _ *crdt.Writer, p *planted[B]) []crdttest.Effect {
	p.n = max(p.n, uint64(d.Int("n", 1, 100)))
	return nil
}

type (
	mine    struct{} // keeps its own number
	fresh   struct{} // encodes into a new slice
	endless struct{} // waits for somebody
)

func (mine) merge(a, b uint64) uint64 {
	if a != 0 {
		return a
	}
	return b
}

func (mine) appends(b []byte, n uint64) ([]byte, error)  { return peak{n}.AppendBinary(b) }
func (fresh) merge(a, b uint64) uint64                   { return max(a, b) }
func (fresh) appends(_ []byte, n uint64) ([]byte, error) { return peak{n}.AppendBinary(nil) }

func (endless) merge(a, b uint64) uint64 {
	if a != 0 && b != 0 && a != b {
		<-outside
	}
	return max(a, b)
}

func (endless) appends(b []byte, n uint64) ([]byte, error) { return peak{n}.AppendBinary(b) }

// planting names the mistake that a child process makes.
const planting = "ACCEPTANCE_MISTAKE"

func TestMistakes(t *testing.T) {
	if name := os.Getenv(planting); name != "" {
		mistakes[name].test(t)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(mistakes)) {
		m := mistakes[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := commit(t, name, m.ends || m.slow)
			t.Logf("%s: %v\n%s", name, err, out)
			if m.fine {
				require.NoError(t, err)
				return
			}
			_, failed := errors.AsType[*exec.ExitError](err)
			require.True(t, failed, "the test with the mistake must fail")
			rest := out
			for _, s := range m.says {
				var ok bool
				_, rest, ok = strings.Cut(rest, s)
				require.True(t, ok, "the failure does not say %q, in this order: %q", s, m.says)
			}
			ended := strings.Contains(out, "panic: ")
			require.Equal(t, m.ends, ended, "the test binary ends by a panic")
		})
	}
}

// commit runs a mistake in a process of its own, and returns its output.
func commit(t *testing.T, name string, soon bool) (string, error) {
	timeout := "1m"
	if soon {
		timeout = "4s" // the testkit ends the binary shortly before that
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMistakes$",
		"-test.timeout="+timeout, "-rapid.nofailfile", "-rapid.shrinktime=100ms")
	cmd.Env = append(os.Environ(), planting+"="+name)
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
