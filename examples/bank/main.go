// Command bank transfers money between accounts, which are sharded entities on three members, while
// one member is killed. Nothing is lost or paid twice: an account records a debt in the same write
// that debits the account, a client without an answer retries with the same id, and the database
// rejects tokens of earlier tenures.
//
//	go run ./examples/bank
//
//	6 accounts of 1000, on 3 members
//	the member that hosts ann is killed, with transfers in flight
//	600 transfers are done
//	ann 5, bob 1510, cid 2500, dan 1005, eve 495, fay 485: equal to a plain sum
//	sum 6000
//	notes of each teller were read in order, and tokens never fell
//	another member hosts ann, under a later token
//
// The leases are in memory. With -store they are in a directory, on etcd or on Kubernetes, and the
// output is the same:
//
//	go run ./examples/bank -store file:/var/tmp/bank
//	go run ./examples/bank -store etcd:127.0.0.1:2379
//	kubectl proxy & go run ./examples/bank -store kubernetes:http://127.0.0.1:8001
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

var accounts = []string{"ann", "bob", "cid", "dan", "eve", "fay"}

// bank holds the regions of all members and their database.
type bank struct {
	ledger  *ledger
	regions [three.Members]*sharding.Region[Message]
}

func newBank() *bank { return &bank{ledger: newLedger(accounts, 1000)} }

// attach prepares a member for hosting accounts.
func (b *bank) attach(m three.Member) (err error) {
	var region *sharding.Region[Message]
	region, err = sharding.New[Message](m.System, m.Session, m.DD,
		sharding.Config{Type: "account", Shards: 32, MinMembers: three.Members},
		func(e sharding.Entity) actor.Actor {
			return &account{Entity: e, bank: region, ledger: b.ledger,
				waiting: map[string]*actor.PID{}}
		})
	b.regions[m.Index] = region
	return err
}

// host returns the member that hosts an account under the latest token. A killed member may not
// know yet that it has lost the account.
func (b *bank) host(name string) (at int, token coordination.Token) {
	for i, r := range b.regions {
		if s := r.Status().Shards[r.Ref(name).Shard()]; s.Token > token {
			at, token = i, s.Token
		}
	}
	return at, token
}

// transfers is the number of transfers per teller.
const transfers = 300

// planned returns the n-th transfer of a teller.
func planned(teller, n int) (from, to string, amount int) {
	return accounts[(n+teller)%len(accounts)], accounts[(n*n/4+teller+1)%len(accounts)],
		5 * (1 + n%7)
}

// teller makes transfers at a member, one after the other, and sends notes to all accounts in
// between.
func (b *bank) teller(ctx context.Context, at, teller int, done chan<- int) error {
	for n := range transfers {
		for _, name := range accounts {
			if err := b.regions[at].Ref(name).Tell(say("note teller-%d %d", teller,
				n)); err != nil {
				return err
			}
		}
		from, to, amount := planned(teller, n)
		if err := b.transfer(ctx, at, fmt.Sprintf("%d/%d", teller, n), from, to,
			amount); err != nil {
			return err
		}
		select {
		case done <- n:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// transfer retries until it gets an answer. The id makes retries safe.
func (b *bank) transfer(ctx context.Context, at int, id, from, to string, amount int) error {
	for {
		in, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := b.regions[at].Ref(from).Ask(in, say("transfer %s %s %d", id, to, amount))
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func main() {
	at := flag.String("store", "memory",
		"where leases are: memory, file:DIRECTORY, etcd:ENDPOINTS, or kubernetes:URL of kubectl proxy")
	flag.Parse()
	if err := open(context.Background(), os.Stdout, *at); err != nil {
		log.Fatal(err)
	}
}

// open runs the bank on a store.
func open(ctx context.Context, out io.Writer, at string) error {
	leases, shut, err := openStore(at)
	if err != nil {
		return err
	}
	b := newBank()
	return errors.Join(three.RunWithLeases(ctx, out, leases, b.attach, b.run), shut())
}

func (b *bank) run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	fmt.Fprintf(out, "%d accounts of 1000, on %d members\n", len(accounts), three.Members)
	if _, err := b.regions[0].Ref("ann").Ask(ctx, say("transfer warm-up ann 0")); err != nil {
		return err
	}
	victim, before := b.host("ann")

	done, ended := make(chan int), make(chan error, three.Members)
	tellers := 0
	for at := range three.Members {
		if at == victim {
			continue
		}
		teller := tellers
		tellers++
		go func() { ended <- b.teller(ctx, at, teller, done) }()
	}
	count := 0
	for left := tellers; left > 0; {
		select {
		case <-done:
			if count++; count == transfers/2 {
				fmt.Fprintln(out, "the member that hosts ann is killed, with transfers in flight")
				c.Kill(victim)
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			left--
		}
	}
	fmt.Fprintln(out, count, "transfers are done")
	return b.audit(ctx, out, tellers, victim, before)
}

// audit compares the ledger with an independent sum, and prints the result.
func (b *bank) audit(ctx context.Context, out io.Writer, tellers, victim int,
	before coordination.Token) error {
	want := map[string]int{}
	for _, name := range accounts {
		want[name] = 1000
	}
	for teller := range tellers {
		for n := range transfers {
			from, to, amount := planned(teller, n)
			want[from] -= amount
			want[to] += amount
		}
	}
	sum := 0
	var balances []string
	for _, name := range accounts {
		has := b.ledger.balance(name)
		sum += has
		balances = append(balances, fmt.Sprint(name, " ", has))
		if has != want[name] {
			return fmt.Errorf("%s has %d, and a plain sum says %d", name, has, want[name])
		}
	}
	fmt.Fprintf(out, "%s: equal to a plain sum\n", strings.Join(balances, ", "))
	fmt.Fprintln(out, "sum", sum)

	// The last notes may still be in flight.
	if err := three.Until(ctx, func() bool {
		return b.ledger.read("teller-0", transfers-1) && b.ledger.read("teller-1", transfers-1)
	}); err != nil {
		return err
	}
	if err := b.ledger.check(); err != nil {
		return err
	}
	fmt.Fprintln(out, "notes of each teller were read in order, and tokens never fell")

	if now, token := b.host("ann"); now == victim || token <= before {
		return fmt.Errorf("ann is at member %d under token %v, after member %d and token %v",
			now, token, victim, before)
	}
	fmt.Fprintln(out, "another member hosts ann, under a later token")
	return nil
}
