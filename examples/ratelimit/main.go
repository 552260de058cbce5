// Command ratelimit lets a cluster send 6 mails and never 7, although each member decides alone,
// even while it is cut off. The right to send is a counter that never falls below zero; each member
// holds part of it.
//
//	go run ./examples/ratelimit
//
//	members may send: 2, 2, 2
//	member 3 is cut off
//	member 3 sends 2 of 5 mails
//	member 1 sends 2 of 3 mails
//	member 2 gives member 1 a right
//	member 1 sends 1 of 1 mails
//	the network is whole again
//	all have sent 5 of 6
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

// Mails counts the mails that may still be sent.
var Mails = distributeddata.NewKey("mails", crdt.BoundedCounter{})

// grant gives this member the right to send n mails.
func grant(ctx context.Context, dd *distributeddata.Replicator, n uint64) error {
	_, err := Mails.Update(ctx, dd, func(w *crdt.Writer, left *crdt.BoundedCounter) error {
		left.Add(w, n)
		return nil
	}, distributeddata.All)
	return err
}

// allow spends one right of this member. It does not wait for others.
func allow(ctx context.Context, dd *distributeddata.Replicator) (bool, error) {
	_, err := Mails.Update(ctx, dd, func(w *crdt.Writer, left *crdt.BoundedCounter) error {
		left.Sub(w, 1)
		return nil
	}, distributeddata.Local)
	if errors.Is(err, crdt.ErrBounds) {
		return false, nil // not here, not now; other members may hold rights
	}
	return err == nil, err
}

// give transfers rights to another replica, which holds them once it has received the change.
func give(ctx context.Context, dd, to *distributeddata.Replicator, n uint64) error {
	_, err := Mails.Update(ctx, dd, func(w *crdt.Writer, left *crdt.BoundedCounter) error {
		left.Transfer(w, to.Status().Replica, n)
		return nil
	}, distributeddata.Majority)
	return err
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	sent := 0
	send := func(member, mails int) error {
		n := 0
		for range mails {
			ok, err := allow(ctx, c.DD[member-1])
			if err != nil {
				return err
			}
			if ok {
				n++
			}
		}
		sent += n
		fmt.Fprintf(out, "member %d sends %d of %d mails\n", member, n, mails)
		return nil
	}
	for _, dd := range c.DD {
		if err := grant(ctx, dd, 2); err != nil {
			return err
		}
	}
	left, err := Mails.Get(ctx, c.DD[0])
	if err != nil {
		return err
	}
	rights := func(i int) uint64 { return left.Rights(c.DD[i].Status().Replica) }
	fmt.Fprintf(out, "members may send: %d, %d, %d\n", rights(0), rights(1), rights(2))
	fmt.Fprintln(out, "member 3 is cut off")
	c.Cut(2)
	if err := errors.Join(send(3, 5), send(1, 3)); err != nil {
		return err
	}
	fmt.Fprintln(out, "member 2 gives member 1 a right")
	if err := errors.Join(give(ctx, c.DD[1], c.DD[0], 1), send(1, 1)); err != nil {
		return err
	}
	fmt.Fprintln(out, "the network is whole again")
	c.Heal()
	if left, err = Mails.Get(ctx, c.DD[0], distributeddata.All); err != nil ||
		left.Value() != int64(6-sent) {
		return fmt.Errorf("%v left of 6 after %d: %w", left, sent, err)
	}
	fmt.Fprintf(out, "all have sent %d of 6\n", sent)
	return nil
}
