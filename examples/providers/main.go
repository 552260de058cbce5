// Command providers runs one member of a cluster with the cluster provider of your choice, and
// prints the members of the cluster. Start it in several terminals, stop one with Ctrl-C, or kill
// it, and start it again.
//
//	go run ./examples/providers -port 4020 -provider automanaged -at 127.0.0.1:5020,127.0.0.1:5021
//	go run ./examples/providers -port 4021 -provider automanaged -at 127.0.0.1:5020,127.0.0.1:5021
//
//	incarnation 1: 127.0.0.1:4020
//	incarnation 1: 127.0.0.1:4020 127.0.0.1:4021
//
// With automanaged, -at lists the health addresses of all members; this member's health port is
// 1000 above -port. With the other providers, -at lists the servers:
//
//	go run ./examples/providers -port 4020 -provider etcd -at 127.0.0.1:2379
//	go run ./examples/providers -port 4020 -provider zookeeper -at 127.0.0.1:2181
//
// In a pod, -provider kubernetes needs no -at, and -advertise is the pod's address. kubernetes.yaml
// deploys three members, with probes, a rolling update and a disruption budget. docs/providers.md
// helps to choose a provider.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/node/provider/etcd"
	"github.com/concord-go/concord/node/provider/kubernetes"
	"github.com/concord-go/concord/node/provider/zookeeper"
)

func main() {
	err := run(context.Background(), os.Stdout, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(node.ExitCode(err))
}

// healthAbove is the offset of a member's automanaged health port from its port.
const healthAbove = 1000

// run runs a member until ctx ends or a signal arrives.
func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("providers", flag.ContinueOnError)
	remote := node.Config{}
	name := flags.String("provider", "automanaged", "automanaged, etcd, kubernetes or zookeeper")
	at := flags.String("at", "",
		"comma-separated addresses of the provider's servers, or of all members")
	flags.StringVar(&remote.Host, "host", "127.0.0.1", "to listen on")
	flags.IntVar(&remote.Port, "port", 4020, "to listen on")
	flags.StringVar(&remote.Advertised, "advertise", "",
		"host:port under which others reach this member")
	flags.StringVar(&remote.SecretFile, "secret", "",
		"file with the secret of the cluster, which a member beyond loopback needs")
	probes := flags.String("probes", "", "host:port for /livez and /readyz")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", node.ErrInvalid, err)
	}
	provider, err := newProvider(*name, strings.Split(*at, ","), remote.Port)
	if err != nil {
		return err
	}
	health := &node.Health{}
	if *probes != "" {
		stop, err := serve(*probes, health)
		if err != nil {
			return err
		}
		defer stop()
	}
	return node.Run(ctx, node.RunConfig{
		Cluster: "providers", Remote: remote, Provider: provider, Health: health,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelWarn})),
	}, func(n *node.Node) error {
		n.System.EventStream.Subscribe(func(event any) {
			if list, ok := event.(*cluster.ClusterTopology); ok {
				fmt.Fprintf(out, "incarnation %d: %s\n", n.Incarnation, strings.Join(addresses(list), " "))
			}
		})
		return nil
	})
}

// serve answers the probes of an orchestrator until stop is called.
func serve(at string, health *node.Health) (stop func(), err error) {
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: health, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // until Close
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}

func addresses(list *cluster.ClusterTopology) (out []string) {
	for _, m := range list.Members {
		out = append(out, m.Address())
	}
	slices.Sort(out)
	return out
}

// newProvider returns a function that creates the provider of each incarnation.
func newProvider(name string, at []string,
	port int) (func() (cluster.ClusterProvider, error), error) {
	switch name {
	case "automanaged":
		return automanaged.New(automanaged.Config{Port: port + healthAbove, Hosts: at}), nil
	case "etcd":
		return etcd.New(etcd.Config{Client: clientv3.Config{Endpoints: at}}), nil
	case "kubernetes":
		return kubernetes.New(kubernetes.Config{}), nil
	case "zookeeper":
		return zookeeper.New(zookeeper.Config{Servers: at}), nil
	}
	return nil, fmt.Errorf("%w: -provider %q: must be automanaged, etcd, kubernetes or zookeeper",
		node.ErrInvalid, name)
}
