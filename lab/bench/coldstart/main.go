// Command coldstart starts members of a cluster at once, in one process, over TCP on loopback, and
// prints when each one counts in the quorums of its replicator, the processor time until then, and
// the largest heap. The same members without a replicator are beside them: what Proto.Actor needs.
//
//	go run ./lab/bench/coldstart 3 10 30 50
//
// It fails if a replicator was not ready after a minute.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

const (
	patience = time.Minute
	// firstPort is that of the first member for health requests. Free ports would not do: the
	// members connect to each other from such ports.
	firstPort = 21000
	// queueSize is what package node sets. With the default of Proto.Actor, a million, each
	// connection takes more than a megabyte.
	queueSize = 1024
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts each cluster in a process of its own, so that none pays for the one before it.
func run(args []string) error {
	if len(args) == 2 && members[args[0]] != nil {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return start(args[0], n)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range args {
		for _, kind := range []string{"bare", "replicated"} {
			child := exec.Command(self, kind, n)
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
			errs = append(errs, child.Run())
		}
	}
	return errors.Join(errs...)
}

// members start a member with a provider of n members, and return when it is up.
var members = map[string]func(ctx context.Context, provider cluster.ClusterProvider, n int) error{
	"bare": bare, "replicated": replicated,
}

// start starts n members and waits until all are up.
func start(kind string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var hosts []string
	for i := range n {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(firstPort+i))
	}
	began := time.Now()
	done := make(chan error, n)
	for i := range n {
		go func() {
			provider, err := automanaged.New(automanaged.Config{Host: "127.0.0.1",
				Port: firstPort + i, Hosts: hosts})()
			if err == nil {
				err = members[kind](ctx, provider, n)
			}
			done <- err
		}()
	}
	var errs []error
	for range n {
		errs = append(errs, <-done)
	}
	took := time.Since(began)
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return err
	}
	fmt.Printf("%s members=%d seconds=%.1f cpu-seconds=%.1f peak-MB=%d\n", kind, n, took.Seconds(),
		time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds(), used.Maxrss>>10)
	return errors.Join(errs...)
}

// bare starts a member of Proto.Actor, which is up when it lists all others.
func bare(ctx context.Context, provider cluster.ClusterProvider, n int) error {
	system := measure.System()
	all := make(chan struct{}, 1)
	system.EventStream.Subscribe(func(event any) {
		if list, ok := event.(*cluster.ClusterTopology); ok && len(list.Members) == n {
			select {
			case all <- struct{}{}:
			default:
			}
		}
	})
	cluster.New(system, cluster.Configure("coldstart", provider, disthash.New(), remote.Configure(
		"127.0.0.1", 0, remote.WithEndpointWriterQueueSize(queueSize)))).StartMember()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a member does not list %d", n)
	}
}

// replicated starts a member with a replicator, and waits until that is ready.
func replicated(ctx context.Context, provider cluster.ClusterProvider, n int) error {
	system := measure.System()
	rc, err := node.Remote(node.Config{Host: "127.0.0.1", PlaintextUnsafe: true})
	if err != nil {
		return err
	}
	c := cluster.New(system, node.Cluster("coldstart", provider, rc))
	data, err := distributeddata.New(system, distributeddata.Config{MinMembers: n/2 + 1})
	if err != nil {
		return err
	}
	if err := node.Start(ctx, c); err != nil {
		return err
	}
	return data.Ready(ctx)
}
