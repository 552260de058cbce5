// Command eventsourced runs sharded entities with Proto.Actor Persistence. An account writes each
// deposit to a journal and, from time to time, a snapshot; wherever it starts again, it replays
// them. The member that hosts an account is killed while it writes an event. Another member
// continues, and the journal rejects the write when it arrives after all.
//
//	go run ./examples/eventsourced
//
//	ann has 115 after 23 deposits
//	the member that hosts ann is killed while it writes a deposit
//	another member has replayed a snapshot of 20 deposits and 3 events
//	the deposit is repeated there: ann has 120
//	the late write is rejected: token 1, and 2 has been seen
//	ann has 125 after 25 deposits, each written once
//
// The journal is in memory. Its methods show what one in a database has to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

// bank holds the regions of all members and their journal.
type bank struct {
	journal *journal
	regions [three.Members]*sharding.Region[Message]
}

func newBank() *bank { return &bank{journal: newJournal()} }

// attach prepares a member for hosting accounts.
func (b *bank) attach(m three.Member) (err error) {
	b.regions[m.Index], err = sharding.New[Message](m.System, m.Session, m.DD,
		sharding.Config{Type: "account", Shards: 32, MinMembers: three.Members},
		func(e sharding.Entity) actor.Actor { return &account{Entity: e, journal: b.journal} })
	return err
}

// host returns the member that hosts an account under the latest token.
func (b *bank) host(name string) (at int) {
	token := coordination.Token(0)
	for i, r := range b.regions {
		if s := r.Status().Shards[r.Ref(name).Shard()]; s.Token > token {
			at, token = i, s.Token
		}
	}
	return at
}

// deposit repeats a deposit of 5 until it is answered with the balance. The number makes that safe.
func (b *bank) deposit(ctx context.Context, at int, name string, number int) (string, error) {
	for {
		in, cancel := context.WithTimeout(ctx, 2*time.Second)
		balance, err := sharding.As[Message](b.regions[at].Ref(name).Ask(in,
			say("deposit %d %d", number, 5)))
		cancel()
		if err == nil {
			return balance.Value, nil
		}
		if ctx.Err() != nil {
			return "", err
		}
	}
}

func (b *bank) run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	balance := ""
	for n := 1; n <= 23; n++ {
		var err error
		if balance, err = b.deposit(ctx, n%three.Members, "ann", n); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "ann has", balance, "after 23 deposits")

	victim := b.host("ann")
	other := (victim + 1) % three.Members
	writing, proceed := b.journal.delayNext()
	late := b.journal.rejected
	answered := make(chan error, 1)
	go func() {
		var err error
		balance, err = b.deposit(ctx, other, "ann", 24)
		answered <- err
	}()
	select {
	case <-writing:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.Kill(victim)
	fmt.Fprintln(out, "the member that hosts ann is killed while it writes a deposit")
	if err := <-answered; err != nil {
		return err
	}
	fmt.Fprintln(out, "another member has replayed", b.journal.replay("ann"))
	fmt.Fprintln(out, "the deposit is repeated there: ann has", balance)

	close(proceed)
	var stale *fence.StaleError
	select {
	case err := <-late:
		if !errors.As(err, &stale) {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	fmt.Fprintf(out, "the late write is rejected: token %d, and %d has been seen\n", stale.Token,
		stale.Highest)

	balance, err := b.deposit(ctx, other, "ann", 25)
	if err != nil {
		return err
	}
	if err := b.journal.check("ann", 25); err != nil {
		return err
	}
	fmt.Fprintln(out, "ann has", balance, "after 25 deposits, each written once")
	return nil
}

func main() {
	b := newBank()
	if err := three.RunWithLeases(context.Background(), os.Stdout, memory.New(), b.attach,
		b.run); err != nil {
		log.Fatal(err)
	}
}
