package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// outage is how long a node is cut off or frozen: longer than the provider waits before the other
// nodes drop it.
const outage = 6 * time.Second

// strike triggers a fault while the nodes work, and reports how long the recovery took.
func (k *shopkeeper) strike(ctx context.Context, kill string) error {
	host, token, err := k.hosting(ctx, 0)
	if err != nil {
		return err
	}
	if kill == "all" {
		return k.killAll(ctx, token)
	}
	victim, role := host, ", where the clerk works"
	if kill == "any" {
		if victim = rand.IntN(nodeCount); victim != host {
			role = ""
		}
	}
	switch kill {
	case "partition":
		return k.outage(ctx, host, token, "cut off from the others", func() (func() error, error) {
			mend := k.links.isolate(victim)
			return func() error { mend(); return nil }, nil
		})
	case "freeze":
		p, _ := k.nodes[victim].get()
		return k.outage(ctx, host, token, "frozen (SIGSTOP)", func() (func() error, error) {
			return func() error { return thaw(p.cmd.Process) }, freeze(p.cmd.Process)
		})
	}
	return k.kill(ctx, victim, role, host, token)
}

// kill kills a node and starts it again.
func (k *shopkeeper) kill(ctx context.Context, victim int, role string, host int,
	token uint64) error {
	if s := k.statuses(ctx)[victim]; s != nil {
		k.lost += s.Bytes
	}
	p, _ := k.nodes[victim].get()
	begin := time.Now()
	p.kill()
	k.say.line("✗ %s killed (SIGKILL)%s", k.nodes[victim].name, role)

	back := make(chan error, 1)
	go func() {
		if victim != host {
			back <- nil
			return
		}
		back <- k.clerkBack(ctx, token, begin)
	}()
	err := k.start(ctx, victim)
	if err == nil {
		k.say.line("✓ %s is back and has caught up after %v", k.nodes[victim].name, since(begin))
	}
	return errors.Join(err, <-back)
}

// killAll kills all nodes at once and starts them again. Acknowledged data is then only on their
// disks.
func (k *shopkeeper) killAll(ctx context.Context, token uint64) error {
	for _, s := range k.statuses(ctx) {
		if s != nil {
			k.lost += s.Bytes
		}
	}
	begin := time.Now()
	var all sync.WaitGroup
	for i := range k.nodes {
		p, _ := k.nodes[i].get()
		all.Go(p.kill)
	}
	all.Wait()
	k.say.line("✗ all three nodes killed at once (SIGKILL): what they have acknowledged is on their disks alone")
	if err := k.open(ctx); err != nil {
		return err
	}
	k.say.line("✓ all three are back with what their disks hold after %v", since(begin))
	return k.clerkBack(ctx, token, begin)
}

// outage disturbs the node with the clerk until the others drop it, and waits until the cluster is
// complete again. The node is not restarted.
func (k *shopkeeper) outage(ctx context.Context, victim int, token uint64, what string,
	begin func() (end func() error, err error)) error {
	began := time.Now()
	end, err := begin()
	if err != nil {
		return err
	}
	k.say.line("✗ %s %s for %v, where the clerk works", k.nodes[victim].name, what, outage)
	back := make(chan error, 1)
	go func() { back <- k.clerkBack(ctx, token, began) }() // clients wait from now on
	err = pause(ctx, outage)
	if err = errors.Join(err, end()); err != nil {
		return errors.Join(err, <-back)
	}
	mended := time.Now()
	k.say.line("  %s can go on; the others have dropped it, and Proto.Actor never takes a dropped member back", k.nodes[victim].name)
	if err := k.whole(ctx); err != nil {
		return errors.Join(err, <-back)
	}
	k.say.line("✓ the three list each other again after %v, no process was started", since(mended))
	return <-back
}

// hosting waits until a clerk works under a token above after.
func (k *shopkeeper) hosting(ctx context.Context,
	after uint64) (seat int, token uint64, err error) {
	for {
		if seat, token = k.host(ctx, after); seat >= 0 {
			return seat, token, nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return -1, 0, err
		}
	}
}

// clerkBack waits until a clerk with a later token works.
func (k *shopkeeper) clerkBack(ctx context.Context, token uint64, begin time.Time) error {
	i, next, err := k.hosting(ctx, token)
	if err != nil {
		return fmt.Errorf("the clerk did not come back: %w", err)
	}
	k.say.line("✓ the clerk works on %s after %v, with fencing token %d instead of %d",
		k.nodes[i].name, since(begin), next, token)
	return nil
}

// whole waits until every node sees all nodes.
func (k *shopkeeper) whole(ctx context.Context) error {
	for {
		all := 0
		for _, s := range k.statuses(ctx) {
			if s != nil && s.Nodes == nodeCount {
				all++
			}
		}
		if all == nodeCount {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the cluster is still split: %w", err)
		}
	}
}

func since(t time.Time) time.Duration { return time.Since(t).Round(10 * time.Millisecond) }
