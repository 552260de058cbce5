// Command registry is a service registry. Each service is an entry with a set of addresses. One
// loop over the prefix of all entries receives additions and removals, at a cost proportional to
// the changes.
//
//	go run ./examples/registry
//
//	auth + 10.0.0.1:80
//	auth + 10.0.0.2:80
//	mail + 10.0.0.3:25
//	auth - 10.0.0.1:80
//	mail is gone
//	known at member 2: auth {10.0.0.2:80}
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

// Services are the entries.
var Services = distributeddata.NewPrefix("service-", crdt.ORSet[string]{})

func register(ctx context.Context, dd *distributeddata.Replicator, service, address string) error {
	_, err := Services.Key(service).Update(ctx, dd,
		func(w *crdt.Writer, at *crdt.ORSet[string]) error {
			at.Add(w, address)
			return nil
		}, distributeddata.All)
	return err
}

func deregister(ctx context.Context, dd *distributeddata.Replicator, service,
	address string) error {
	_, err := Services.Key(service).Update(ctx, dd,
		func(w *crdt.Writer, at *crdt.ORSet[string]) error {
			at.Remove(w, address)
			return nil
		}, distributeddata.All)
	return err
}

// watch reports additions and removals line by line, until ctx ends.
func watch(ctx context.Context, dd *distributeddata.Replicator, tell func(line string)) {
	for c := range Services.Changes(ctx, dd) {
		name, _ := Services.Rest(c.Key)
		if c.Deleted {
			tell(name + " is gone")
			continue
		}
		added, removed := c.Value.Diff(c.Old)
		for address := range added {
			tell(name + " + " + address)
		}
		for address := range removed {
			tell(name + " - " + address)
		}
	}
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	watching, stop := context.WithCancel(ctx)
	lines, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		watch(watching, c.DD[2], func(line string) { lines <- line })
	}()
	defer func() { stop(); <-ended }()

	for _, step := range []struct {
		member int
		do     func(ctx context.Context, dd *distributeddata.Replicator, service,
			address string) error
		service string
		address string
	}{
		{0, register, "auth", "10.0.0.1:80"},
		{1, register, "auth", "10.0.0.2:80"},
		{1, register, "mail", "10.0.0.3:25"},
		{1, deregister, "auth", "10.0.0.1:80"},
		{0, deregister, "mail", "10.0.0.3:25"},
	} {
		if err := step.do(ctx, c.DD[step.member], step.service, step.address); err != nil {
			return err
		}
		c.DD[2].FlushChanges() // so that the loop need not wait for Config.NotifyInterval
		fmt.Fprintln(out, <-lines)
	}
	for key, at := range Services.Of(c.DD[1].Snapshot()) {
		name, _ := Services.Rest(key)
		fmt.Fprintln(out, "known at member 2:", name, at)
	}
	return nil
}
