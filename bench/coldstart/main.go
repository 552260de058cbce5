// Command coldstart starts members of a cluster at once, in one process, over TCP on loopback, and
// prints when each one counts in the quorums of its replicator, the processor time until then, and
// the largest heap. The same members without a replicator are beside them: what Proto.Actor needs.
//
//	go run ./bench/coldstart 3 10 30 50
//
// It fails if a replicator was not ready after a minute.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

const (
	patience  = time.Minute
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
	if len(args) == 2 && args[0] == "bare" || len(args) == 2 && args[0] == "replicated" {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return start(n, args[0] == "replicated")
	}
	var errs []error
	for _, n := range args {
		for _, kind := range []string{"bare", "replicated"} {
			errs = append(errs, child(kind, n))
		}
	}
	return errors.Join(errs...)
}

func child(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := os.StartProcess(self, append([]string{self}, args...),
		&os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("%v: %v", args, state)
	}
	return err
}

// start starts n members and waits until all are up.
func start(n int, replicated bool) error {
	var hosts []string
	for i := range n {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(firstPort+i))
	}
	began := time.Now()
	done := make(chan error, n)
	for i := range n {
		go func() { done <- member(i, hosts, replicated) }()
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
	kind := "bare"
	if replicated {
		kind = "replicated"
	}
	fmt.Printf("%s members=%d seconds=%.1f cpu-seconds=%.1f peak-MB=%d\n", kind, n, took.Seconds(),
		time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds(), used.Maxrss>>10)
	return errors.Join(errs...)
}

// member returns when the member of that index sees all others and its replicator is ready.
func member(i int, hosts []string, replicated bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	system := actor.NewActorSystem(actor.WithLoggerFactory(
		func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	provider, err := automanaged.New(automanaged.Config{Host: "127.0.0.1", Port: firstPort + i,
		Hosts: hosts})()
	if err != nil {
		return err
	}
	config, err := configured(provider, replicated)
	if err != nil {
		return err
	}
	c := cluster.New(system, config)
	var data *distributeddata.Replicator
	if replicated {
		data, err = distributeddata.New(system,
			distributeddata.Config{MinMembers: len(hosts)/2 + 1})
		if err != nil {
			return err
		}
	}
	if replicated {
		if err := node.Start(ctx, c); err != nil {
			return err
		}
		return data.Ready(ctx)
	}
	c.StartMember()
	for c.MemberList.Members().Len() < len(hosts) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("member %d sees %d", i, c.MemberList.Members().Len())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// configured returns the configuration of package node, or that of Proto.Actor.
func configured(provider cluster.ClusterProvider, replicated bool) (*cluster.Config, error) {
	if !replicated {
		return cluster.Configure("coldstart", provider, disthash.New(), remote.Configure(
			"127.0.0.1", 0, remote.WithEndpointWriterQueueSize(queueSize))), nil
	}
	rc, err := node.Remote(node.Config{Host: "127.0.0.1", PlaintextUnsafe: true})
	if err != nil {
		return nil, err
	}
	return node.Cluster("coldstart", provider, rc), nil
}
