// Command leader elects a leader among its processes. Start it in several terminals: one leads, the
// others follow. Stop the leader with Ctrl-C, and another one leads at once.
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
// Kill the leader with kill -9, and another one leads when its lease has expired, after about 10s.
// Freeze it with kill -STOP for as long, and continue it with kill -CONT: it learns at once that it
// leads no more, and follows the new leader.
//
// The processes share a directory. With -store etcd they use etcd, from several machines, and -at
// lists its endpoints; with -store kubernetes they use Lease objects in the pod's namespace:
//
//	go run ./examples/leader -store etcd -at 127.0.0.1:2379 A
//	kubectl get lease concord-example-leader # with -store kubernetes
//
// While the store does not answer nobody is elected, and a leader leads until its lease expires.
// Tokens always grow, but not always by one: those of etcd are revisions.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
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

// defaultAt is where a store is unless -at says otherwise.
var defaultAt = map[string]string{"file": filepath.Join(os.TempDir(), leaseName),
	"etcd": "127.0.0.1:2379"}

// run takes part in the election until ctx ends.
func run(ctx context.Context, out io.Writer, args []string) (err error) {
	flags := flag.NewFlagSet("leader", flag.ContinueOnError)
	class := flags.String("store", "file", "file, etcd or kubernetes")
	at := flags.String("at", "",
		"directory of the file store, or comma-separated endpoints of etcd "+
			"(default "+defaultAt["file"]+" or "+defaultAt["etcd"]+")")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: leader [-store STORE] [-at WHERE] NAME")
	}
	provider, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{"leader": {
		LeaseClass: *class,
		Config:     coordination.Config{TTL: 10 * time.Second},
		Store:      settings(cmp.Or(*at, defaultAt[*class])),
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
		if err := term(ctx, out, lease, name); err != nil {
			fmt.Fprintf(out, "%s leads no more: %v\n", name, err)
		}
	}
	fmt.Fprintln(out, name, "ends")
	return nil
}

// term follows until it leads, and returns why it no longer leads, or nil when ctx ends.
func term(ctx context.Context, out io.Writer, lease *coordination.Lease, name string) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	var follower sync.WaitGroup
	seen := make(chan struct{}) // closed when the first leader is known
	follower.Go(func() {
		follow(following, out, lease, name, sync.OnceFunc(func() { close(seen) }))
	})
	<-seen
	err := lease.Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
		stop()
		follower.Wait()
		fmt.Fprintf(out, "%s leads, token %d\n", name, g.Token())
		<-ctx.Done() // a leader would work here, and check g before each step
		return context.Cause(ctx)
	})
	stop()
	follower.Wait()
	if errors.Is(err, coordination.ErrLost) {
		return err
	}
	return nil
}

// follow prints who leads, and each change, until ctx ends. It calls begun after the first answer
// of the store, or its first failure.
func follow(ctx context.Context, out io.Writer, lease *coordination.Lease, name string,
	begun func()) {
	defer begun()
	first := true
	for h, err := range lease.Holders(ctx) {
		switch {
		case err != nil:
			fmt.Fprintf(out, "%s does not reach the store: %v\n", name, err)
		case h.Session == "" && first:
			fmt.Fprintln(out, name, "follows nobody")
		case h.Session != "" && h.Session != lease.Session().ID():
			fmt.Fprintln(out, name, "follows", h.Owner)
		}
		first = err != nil
		begun()
	}
}
