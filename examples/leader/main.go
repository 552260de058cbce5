// Command leader elects a leader among its processes. Start it in several terminals: one leads, the
// others follow. Stop the leader with Ctrl-C, and another one leads at once. Kill it, and another
// one leads when its lease has expired, after 10s.
//
//	go run ./examples/leader A
//
//	A follows nobody
//	A leads, token 1
//	A ends
//
//	go run ./examples/leader B
//
//	B follows A
//	B leads, token 2
//	B ends
//
// The processes share a directory. With -store etcd they use etcd, from several machines, and -at
// lists its endpoints; with -store kubernetes they use Lease objects in the pod's namespace:
//
//	go run ./examples/leader -store etcd -at 127.0.0.1:2379 A
//	kubectl get lease concord-example-leader # with -store kubernetes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leaseconfig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const leaseName = "concord-example-leader"

// openers are the available stores.
var openers = map[string]leaseconfig.Opener{"file": file.Opener, "etcd": etcd.Opener,
	"kubernetes": kubernetes.Opener}

// run takes part in the election until ctx ends.
func run(ctx context.Context, out io.Writer, args []string) (err error) {
	flags := flag.NewFlagSet("leader", flag.ContinueOnError)
	class := flags.String("store", "file", "file, etcd or kubernetes")
	at := flags.String("at", filepath.Join(os.TempDir(), leaseName),
		"directory of the file store, or comma-separated endpoints of etcd")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: leader [-store STORE] [-at WHERE] NAME")
	}
	provider, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{"leader": {
		LeaseClass: *class,
		Config:     coordination.Config{TTL: 10 * time.Second},
		Store:      settings(*at),
	}}, openers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close(context.WithoutCancel(ctx))) }()
	lease, _, err := provider.Lease("leader", leaseName, flags.Arg(0))
	if err != nil {
		return err
	}
	return elect(ctx, out, lease, flags.Arg(0))
}

// settings returns the settings of a store, as they would be below store in a file.
func settings(at string) func(into any) error {
	return func(into any) error {
		switch s := into.(type) {
		case *file.Settings:
			s.Directory = at
		case *etcd.Settings:
			s.Endpoints = strings.Split(at, ",")
		}
		return nil
	}
}

// elect follows, leads, and follows again when its lease is lost.
func elect(ctx context.Context, out io.Writer, lease *coordination.Lease, name string) error {
	for ctx.Err() == nil {
		leader := "nobody"
		if h, err := lease.Holder(ctx); err == nil && h.Session != "" {
			leader = h.Owner
		}
		fmt.Fprintln(out, name, "follows", leader)
		_ = lease.Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
			fmt.Fprintf(out, "%s leads, token %d\n", name, g.Token())
			<-ctx.Done() // a leader would work here, and check g before each step
			return context.Cause(ctx)
		})
	}
	fmt.Fprintln(out, name, "ends")
	return nil
}
