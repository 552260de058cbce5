// Command sql keeps sharded entities, their leases and their fencing tokens in one PostgreSQL. An
// account changes its row in a transaction that first compares the token of the account's shard.
// The member that hosts an account is killed just before such a transaction. Another member
// continues, and when the transaction begins after all, it is rejected and changes nothing.
//
//	go run ./examples/sql -database postgres://localhost/postgres
//
//	ann has 15 after 3 deposits
//	the member that hosts ann is killed before it writes a deposit
//	the deposit is repeated at another member: ann has 20
//	the late transaction is rejected: fence: stale token
//	in the database, ann has 20 after 4 deposits
//
// The program drops and creates the tables concord_example_accounts, concord_example_deposits and
// concord_fence, and creates those of package postgres.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/postgres"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

// bank holds the regions of all members and their database.
type bank struct {
	db      *database
	regions [three.Members]*sharding.Region[Message]
}

// attach prepares a member for hosting accounts.
func (b *bank) attach(m three.Member) (err error) {
	b.regions[m.Index], err = sharding.New[Message](m.System, m.Session, m.DD,
		sharding.Config{Type: "account", Shards: 32, MinMembers: three.Members},
		func(e sharding.Entity) actor.Actor { return &account{Entity: e, db: b.db} })
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

func (b *bank) run(ctx context.Context, out io.Writer, c *three.Cluster) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	balance := ""
	for n := 1; n <= 3; n++ {
		if balance, err = b.deposit(ctx, n%three.Members, "ann", n); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "ann has", balance, "after 3 deposits")

	victim := b.host("ann")
	other := (victim + 1) % three.Members
	late := b.db.delayNext()
	answered := make(chan error, 1)
	go func() {
		var err error
		balance, err = b.deposit(ctx, other, "ann", 4)
		answered <- err
	}()
	if err := wait(ctx, late.begun); err != nil {
		return err
	}
	c.Kill(victim)
	fmt.Fprintln(out, "the member that hosts ann is killed before it writes a deposit")
	if err := <-answered; err != nil {
		return err
	}
	fmt.Fprintln(out, "the deposit is repeated at another member: ann has", balance)

	close(late.proceed)
	if err := wait(ctx, late.ended); err != nil {
		return err
	}
	if !errors.Is(late.err, fence.ErrStale) {
		return fmt.Errorf("the late transaction: %w", late.err)
	}
	fmt.Fprintln(out, "the late transaction is rejected:", fence.ErrStale)
	text, err := b.db.account(ctx, "ann")
	fmt.Fprintln(out, "in the database, ann has", text)
	return err
}

func wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func main() {
	at := flag.String("database", "", "`URL` or connection string of a PostgreSQL database")
	flag.Parse()
	if err := open(context.Background(), os.Stdout, *at); err != nil {
		log.Fatal(err)
	}
}

// open runs the bank on a database.
func open(ctx context.Context, out io.Writer, at string) (err error) {
	if at == "" {
		return errors.New("-database is missing: it must be the URL of a PostgreSQL database")
	}
	db, err := sql.Open("pgx", at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	d := &database{DB: db}
	if err := d.install(ctx); err != nil {
		return err
	}
	leases, err := postgres.New(db, postgres.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leases.Close()) }()
	if err := leases.Install(ctx); err != nil {
		return err
	}
	b := &bank{db: d}
	return three.RunWithLeases(ctx, out, leases, b.attach, b.run)
}
