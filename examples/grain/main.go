// Command grain shows what a partition does to a virtual actor of Proto.Actor. Three members run
// grains of the kind Account, whose code protoc-gen-go-grain has generated. The member with the
// account of ann is cut off from the others, and money is paid in on both sides.
//
//	go run ./examples/grain
//
//	10 paid in: ann has 10
//	the member with ann's account is cut off
//	the others pay in 20: ann has 30
//	the member that was cut off pays in 20: no answer
//	the bank has 30, and 30 were paid in
//
// With the lookup of Proto.Actor, both sides have an account of ann, and a payment is lost:
//
//	go run ./examples/grain -lookup disthash
//
//	10 paid in: ann has 10
//	the member with ann's account is cut off
//	the others pay in 20: ann has 30
//	the member that was cut off pays in 20: ann has 30
//	the bank has 30, and 50 were paid in
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/grain/account"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/grains"
)

func main() {
	lookup := flag.String("lookup", "grains", "the identity lookup: `grains or disthash`")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *lookup); err != nil {
		log.Fatal(err)
	}
}

// bank stores the balances, for all members.
type bank struct {
	mu       sync.Mutex
	balances map[string]int64
	members  [three.Members]*cluster.Cluster
}

// owner is the grain: the account of one person. It reads its balance when it is activated, and
// writes it after each payment.
type owner struct {
	bank    *bank
	balance int64
}

// Init implements account.Account.
func (o *owner) Init(ctx cluster.GrainContext) {
	o.bank.mu.Lock()
	defer o.bank.mu.Unlock()
	o.balance = o.bank.balances[ctx.Identity()]
}

// Deposit implements account.Account.
func (o *owner) Deposit(r *account.DepositRequest,
	ctx cluster.GrainContext) (*account.DepositResponse, error) {
	if e, ok := sharding.Self(ctx); ok && e.Check() != nil {
		return nil, e.Check() // the lease of the shard is lost: no effect
	}
	o.balance += r.Amount
	o.bank.mu.Lock()
	defer o.bank.mu.Unlock()
	o.bank.balances[ctx.Identity()] = o.balance
	return &account.DepositResponse{Balance: o.balance, Member: ctx.Self().Address}, nil
}

// Terminate implements account.Account.
func (o *owner) Terminate(cluster.GrainContext) {}

// ReceiveDefault implements account.Account.
func (o *owner) ReceiveDefault(cluster.GrainContext) {}

// attach makes a member run accounts.
func (b *bank) attach(m three.Member, lookup string) error {
	var found cluster.IdentityLookup
	var err error
	switch lookup {
	case "disthash":
		found = disthash.New()
	case "grains":
		found, err = grains.New(m.System, grains.Config{Session: m.Session, Replicator: m.DD,
			MinMembers: three.Members})
	default:
		err = fmt.Errorf("-lookup %q is neither grains nor disthash", lookup)
	}
	if err != nil {
		return err
	}
	b.members[m.Index] = m.Grains(found,
		account.NewAccountKind(func() account.Account { return &owner{bank: b} }, 0))
	return nil
}

// deposit pays in at a member.
func (b *bank) deposit(member int, person string, amount int64) (*account.DepositResponse, error) {
	client := account.GetAccountGrainClient(b.members[member], person)
	return client.Deposit(&account.DepositRequest{Amount: amount})
}

// choose pays in for a person whose account is not at member 0, and returns the name of the person
// and the number of the member.
func (b *bank) choose() (person string, at int, err error) {
	for _, person := range []string{"ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal"} {
		r, err := b.deposit(0, person, 10)
		if err != nil {
			return "", 0, err
		}
		if at := three.Index(r.Member); at > 0 {
			return person, at, nil
		}
	}
	return "", 0, errors.New("member 0 has all accounts")
}

func (b *bank) run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	person, at, err := b.choose()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "10 paid in: %s has 10\n", "ann")
	c.Isolate(at)
	fmt.Fprintln(out, "the member with ann's account is cut off")
	r, err := b.deposit(0, person, 20)
	for ; err != nil; r, err = b.deposit(0, person, 20) { // until its lease has expired
		if ctx.Err() != nil {
			return err
		}
	}
	fmt.Fprintf(out, "the others pay in 20: ann has %d\n", r.Balance)
	paid := 30
	answer := "no answer"
	if r, err = b.deposit(at, person, 20); err == nil {
		paid += 20
		answer = fmt.Sprintf("ann has %d", r.Balance)
	}
	fmt.Fprintln(out, "the member that was cut off pays in 20:", answer)
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(out, "the bank has %d, and %d were paid in\n", b.balances[person], paid)
	return nil
}

func run(ctx context.Context, out io.Writer, lookup string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	b := &bank{balances: map[string]int64{}}
	store := memory.New()
	return three.RunWithLeases(ctx, out, store, func(m three.Member) error {
		return b.attach(m, lookup)
	}, b.run)
}
