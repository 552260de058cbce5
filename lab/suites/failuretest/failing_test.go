package failuretest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/testkit"
)

// add is no protobuf message.
type add struct{}

// mustFail is set in the process whose tests must fail.
const mustFail = "TESTKIT_TEST_MUST_FAIL"

// failures lists clusters whose tests fail, and the expected failure messages. A recorder cannot
// run them, since a bubble requires a *testing.T.
var failures = map[string]struct {
	test func(t *testing.T, c *testkit.Cluster)
	says []string
}{
	"seed and story": {func(t *testing.T, c *testkit.Cluster) {
		c.Advance(time.Second)
		c.Partition([]int{0}, []int{1})
		c.Link(0, 1).Next(nil, testkit.Faults{Cut: true})
		c.Advance(time.Hour)
		c.Heal()
		c.Member(1).Freeze()
		c.Member(1).Store.Set(testkit.StoreFaults{Away: true})
		c.Member(0).System.Logger().Warn("careful", "with", "that")
		c.Member(0).Restart()
		t.Error("done")
	}, []string{
		"seed 77; to run it again: TESTKIT_SEED=77",
		"What was done to the cluster, and its warnings:",
		"1.001s  partition [[0] [1]]", "1h0m1s  heal", "freeze m001",
		"lease store of m001: {Err:<nil> Away:true",
		"warn at m000: WARN  careful with=that", "crash m000", "restart m000 as m002",
	}},
	"nothing done": {func(t *testing.T, _ *testkit.Cluster) {
		t.Error("x")
	}, []string{"Nothing was done to the cluster."}},
	"no protobuf": {func(_ *testing.T, c *testkit.Cluster) {
		c.Member(0).System.Root.Send(actor.NewPID(c.Member(1).Address, "x"), &add{})
	}, []string{"sent to another member, but no protobuf messages, so remoting would drop them: [*failuretest.add]"}},
	"no such member": {func(_ *testing.T, c *testkit.Cluster) {
		c.Member(2)
	}, []string{"no member 2: there are 2"}},
	"cut from nobody": {func(_ *testing.T, c *testkit.Cluster) {
		c.Cut(0, 2)
	}, []string{"no member 2: there are 2"}},
	"partition from nobody": {func(_ *testing.T, c *testkit.Cluster) {
		c.Partition([]int{1}, []int{2})
	}, []string{"no member 2: there are 2"}},
	"never quiet": {func(_ *testing.T, c *testkit.Cluster) {
		c.Link(0, 1).Set(testkit.Faults{Delay: time.Hour})
		c.Member(0).System.Root.Send(actor.NewPID(c.Member(1).Address, "x"), wrapperspb.Int64(1))
		c.Settle()
	}, []string{"not quiet within a minute: ",
		"messages and 0 calls of the lease store on their way"}},
	"component fails": {func(_ *testing.T, c *testkit.Cluster) {
		testkit.Each(c, func(*testkit.Member) (int, error) { return 0, errors.New("no room") })
	}, []string{"component int of member 0: no room"}},
	"never ready": {func(_ *testing.T, c *testkit.Cluster) {
		lifecycle.OnStart(c.Member(1).System, "oven", func(context.Context) error {
			return errors.New("still cold")
		})
		c.Ready()
	}, []string{`member 1 is not ready: start "oven": still cold`}},
	"restarted twice": {func(_ *testing.T, c *testkit.Cluster) {
		old := c.Member(0)
		old.Restart()
		old.Restart()
	}, []string{"member m000 has been replaced by m002"}},
	"no such rate": {func(_ *testing.T, c *testkit.Cluster) { c.Member(1).Clock().SetRate(0) },
		[]string{"rate of clock 1 (0) must be from 1/1000 to 1000"}},
	"not in time": {func(t *testing.T, _ *testkit.Cluster) {
		testkit.Eventually(t, time.Hour, func() error { return errors.New("too early") })
	}, []string{"not within 1h0m0s, tried ", "last: too early"}},
}

func TestRun_FailuresTellWhatWasSeen(t *testing.T) {
	if os.Getenv(mustFail) != "" {
		for name, f := range failures {
			t.Run(name, func(t *testing.T) { testkit.Run(t, 2, f.test) })
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^TestRun_FailuresTellWhatWasSeen$", "-test.v")
	cmd.Env = append(os.Environ(), mustFail+"=1", "TESTKIT_SEED=77")
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Fatalf("expected failures, got %v\n%s", err, out)
	}
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			rest := section(string(out), name)
			for _, part := range f.says { // in this order
				require.Contains(t, rest, part)
				_, rest, _ = strings.Cut(rest, part)
			}
		})
	}
}

// section returns the output of the test with the given name.
func section(out, name string) string {
	name = "TestRun_FailuresTellWhatWasSeen/" + strings.ReplaceAll(name, " ", "_")
	_, after, _ := strings.Cut(out, "=== RUN   "+name+"\n")
	if next := strings.Index(after, "=== RUN"); next >= 0 {
		after = after[:next]
	}
	_, summary, _ := strings.Cut(out, "--- FAIL: "+name+" ")
	if next := strings.Index(summary, "--- "); next >= 0 {
		summary = summary[:next]
	}
	return after + summary
}
