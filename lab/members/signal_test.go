package members

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/node"
)

const (
	runEnv    = "CONCORD_NODE_RUN_TEST"
	healthEnv = "CONCORD_NODE_RUN_HEALTH" // the port for Proto.Actor's provider
	hostsEnv  = "CONCORD_NODE_RUN_HOSTS"  // of all members
)

// alone is a provider that lists the member itself, and sends the cluster of its incarnation.
type alone chan *cluster.Cluster

func (a alone) StartMember(c *cluster.Cluster) error {
	host, port, err := c.ActorSystem.GetHostPort()
	a <- c
	self := &cluster.Member{Id: c.ActorSystem.ID, Host: host, Port: int32(port)}
	go c.MemberList.UpdateClusterTopology(cluster.Members{self})
	return err
}

func (alone) StartClient(*cluster.Cluster) error { return nil }
func (alone) Shutdown(bool) error                { return nil }

// runChild is the main function of a process under node.Main, by scenario. It prints "up" when its
// work has begun.
func runChild(scenario string) {
	switch scenario {
	case "whole":
		runWhole()
	case "mistake":
		runMistaken()
	}
	lives := make(alone, 1)
	cfg := node.RunConfig{
		Cluster: "run-test", StartTimeout: patience, StopTimeout: patience,
		Provider: func() (cluster.ClusterProvider, error) { return lives, nil },
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	switch scenario {
	case "late":
		cfg.StopTimeout = 3 * time.Second
	case "reexec":
		cfg.OnSplit = node.Reexec
	case "cluster", "unsendable", "burst":
		cfg.Remote.MaxMessage = 8 << 20
		cfg.Provider = func() (cluster.ClusterProvider, error) {
			port, err := strconv.Atoi(os.Getenv(healthEnv))
			return automanaged.NewWithConfig(200*time.Millisecond, port,
				strings.Split(os.Getenv(hostsEnv), ",")...), err
		}
	}
	node.Main(cfg, func(n *node.Node) error {
		receiveBurst(n)
		n.Go(func(ctx context.Context) error {
			fmt.Println("up", os.Getpid())
			switch scenario {
			case "stubborn", "late":
				<-ctx.Done()
				fmt.Println("stopping")
				select {}
			case "unsendable":
				if to := another(ctx, n, "nobody"); to != nil {
					n.System.Root.Send(to, "s3cret") // and a message above MaxMessage
					n.System.Root.Send(to, wrapperspb.String(strings.Repeat("s3cret", 2<<20)))
				}
			case "burst":
				sendBurst(ctx, n)
			case "reexec":
				_ = os.Setenv(runEnv, "orderly") // for the process that replaces this one
				(<-lives).MemberList.UpdateClusterTopology(nil)
			}
			<-ctx.Done()
			return nil
		})
		return nil
	})
}

// another returns the PID of an actor of another member, as soon as there is one.
func another(ctx context.Context, n *node.Node, name string) *actor.PID {
	for ctx.Err() == nil {
		for _, m := range n.Cluster.MemberList.Members().Members() {
			if m.Id != n.System.ID {
				return actor.NewPID(m.Address(), name)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// sendBurst sends large messages to another member, once that one answers, so that it lists this
// one.
func sendBurst(ctx context.Context, n *node.Node) {
	to := another(ctx, n, "sink")
	for answers := 0; answers < 3 && ctx.Err() == nil; {
		if _, err := n.System.Root.RequestFuture(to, wrapperspb.Bool(true),
			time.Second).Result(); err == nil {
			answers++
		}
	}
	for i := range burst {
		n.System.Root.Send(to, wrapperspb.Bytes(append(make([]byte, 1<<20), byte(i))))
	}
}

// burst is how many messages of a MiB are sent at once: more than fit into MaxMessage together.
const burst = 30

// receiveBurst spawns an actor that logs when it has received them all, in order.
func receiveBurst(n *node.Node) {
	next := byte(0)
	_, err := n.System.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *wrapperspb.BoolValue:
			ctx.Respond(m)
		case *wrapperspb.BytesValue:
			if m.Value[1<<20] == next {
				next++
			}
			if next == burst {
				slog.Info("burst received")
			}
		}
	}), "sink")
	if err != nil {
		panic(err)
	}
}

// running starts a process with a scenario and waits until its work has begun.
func running(t *testing.T, scenario string) (cmd *exec.Cmd, lines *bufio.Reader, pid string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runEnv+"="+scenario, "GORACE=exitcode=0")
	stderr := &child.Screen{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the process has printed:\n%s", stderr)
		}
	})
	lines = bufio.NewReader(out)
	for {
		if pid, up := strings.CutPrefix(line(t, lines), "up "); up { // skips a greeting
			return cmd, lines, pid
		}
	}
}

func line(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	l, err := lines.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(l)
}

func ended(t *testing.T, cmd *exec.Cmd, lines io.Reader) int {
	t.Helper()
	_, _ = io.Copy(io.Discard, lines)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

func TestMain_SIGTERMStopsInOrder(t *testing.T) {
	cmd, lines, _ := running(t, "orderly")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, ended(t, cmd, lines))
}

func TestMain_ASecondSignalEndsAtOnce(t *testing.T) {
	cmd, lines, _ := running(t, "stubborn")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, "stopping", line(t, lines))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 128+int(syscall.SIGTERM), ended(t, cmd, lines))
}

func TestMain_WorkThatDoesNotReturnHasItsOwnStatus(t *testing.T) {
	cmd, lines, _ := running(t, "late")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, "stopping", line(t, lines))
	require.Equal(t, 4, ended(t, cmd, lines))
	require.Contains(t, fmt.Sprint(cmd.Stderr), "work given to Go has not returned")
}

func TestMain_ReexecIsAnotherRunOfTheSameProcess(t *testing.T) {
	cmd, lines, pid := running(t, "reexec")
	require.Equal(t, "up "+pid, line(t, lines))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, ended(t, cmd, lines))
}
