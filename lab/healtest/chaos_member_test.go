//go:build linux

package healtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

const (
	accounts = 40
	// depositEvery is the pause between two deposits of one member.
	depositEvery = 20 * time.Millisecond
	// depositors is how many deposits of a member may wait at the same time.
	depositors = 16
	// repeatAfter is how long a depositor waits for an answer before it repeats the deposit.
	repeatAfter = 3 * time.Second
)

// entries are the deposits of an account, by number.
type entries = crdt.ORMap[uint64, fence.Register[string]]

var books = distributeddata.NewPrefix("book-", entries{})

// deposited is a deposit that an account has acknowledged.
type deposited struct {
	At      time.Duration
	Account string
	Number  uint64
	ID      string
}

func (d deposited) String() string { return fmt.Sprint(d.Account, " ", d.Number, " ", d.ID) }

// depositing is a member with the default of every setting. In addition to what other members do,
// it hosts accounts: entities, and a singleton, that keep what they hold in replicated data.
type depositing struct {
	*member
	data   distributeddata.Config
	region *sharding.Region[*wrapperspb.StringValue]
	bank   *singleton.Singleton
	made   chan struct{}
	once   sync.Once
}

// configure changes the configuration to the defaults. It opens the store of a durable member,
// which the caller closes.
func (d *depositing) configure(cfg *node.RunConfig) (store.Store, error) {
	cfg.Session, cfg.MinMembers = coordination.Config{}, len(d.Hosts)/2+1
	cfg.Provider = d.defaultProvider
	if d.Data == "" {
		return nil, nil
	}
	rows, err := badger.Open(d.Data, badger.Config{})
	d.data = distributeddata.Config{Member: d.Host, Store: rows, Durable: []string{"*"}}
	return rows, err
}

func (d *depositing) register(n *node.Node) error {
	d.incarnation.Store(int64(n.Incarnation))
	d.system.Store(n)
	dd, err := distributeddata.New(n.System, d.data)
	if err != nil {
		return err
	}
	region, err := sharding.New[*wrapperspb.StringValue](n.System, n.Session, dd,
		sharding.Config{Type: "account", Shards: accounts / 2},
		func(e sharding.Entity) actor.Actor { return openBook(e.ID, e.Tenure, dd) })
	if err != nil {
		return err
	}
	bank, err := singleton.New(n.System, n.Session, singleton.Config{Name: "bank"},
		func(t coordination.Tenure) actor.Actor { return openBook("bank", t, dd) })
	if err != nil {
		return err
	}
	worker, err := singleton.New(n.System, n.Session, singleton.Config{Name: "worker"}, d.produce)
	if err != nil {
		return err
	}
	d.dd.Store(dd)
	d.worker.Store(worker)
	d.once.Do(func() { d.region, d.bank = region, bank; close(d.made) })
	return nil
}

// book is an account. It answers a deposit with its number, which is the same when the deposit is
// repeated.
type book struct {
	coordination.Tenure
	name    string
	dd      *distributeddata.Replicator
	opened  bool
	numbers map[string]uint64
}

func openBook(name string, t coordination.Tenure, dd *distributeddata.Replicator) *book {
	return &book{Tenure: t, name: name, dd: dd}
}

// open continues after the last deposit of earlier hosts, all of which a majority read finds.
func (b *book) open() error {
	ctx, cancel := context.WithTimeout(b.Context(), opTimeout)
	defer cancel()
	all, err := books.Key(b.name).Get(ctx, b.dd, distributeddata.Majority)
	if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
		return err
	}
	b.opened, b.numbers = true, map[string]uint64{}
	for number, r := range all.All() {
		id, _ := r.Value()
		b.numbers[id] = number
	}
	return nil
}

// Receive implements actor.Actor.
func (b *book) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*wrapperspb.StringValue)
	if !ok {
		return
	}
	if !b.opened && b.open() != nil {
		return // the depositor repeats the deposit
	}
	number, known := b.numbers[m.Value]
	if !known {
		number = uint64(len(b.numbers)) + 1
		if b.write(number, m.Value) != nil {
			b.opened = false // it may be stored, now or later
			return
		}
		b.numbers[m.Value] = number
	}
	if b.Check() == nil { // another host may have opened the book meanwhile
		ctx.Respond(wrapperspb.UInt64(number))
	}
}

func (b *book) write(number uint64, id string) error {
	ctx, cancel := context.WithTimeout(b.Context(), opTimeout)
	defer cancel()
	_, err := books.Key(b.name).Update(ctx, b.dd, func(w *crdt.Writer, all *entries) error {
		all.Update(w, number, func(v *fence.Register[string]) { v.Set(w, b.Token(), id) })
		return nil
	}, distributeddata.Majority)
	return err
}

// depositAll deposits until the load ends.
func (d *depositing) depositAll() {
	var all sync.WaitGroup
	defer all.Wait()
	select {
	case <-d.made:
	case <-d.quiet:
		return
	}
	free := make(chan struct{}, depositors)
	for i := 0; ; i++ {
		select {
		case <-d.quiet:
			return
		case <-time.After(depositEvery):
		}
		free <- struct{}{}
		all.Go(func() {
			d.deposit(rand.IntN(accounts+1), d.Name+"-"+strconv.Itoa(i))
			<-free
		})
	}
}

// deposit repeats a deposit until it is answered, or the load ends.
func (d *depositing) deposit(account int, id string) {
	for {
		name, number, err := d.try(account, id)
		if err == nil {
			d.say(report{Deposited: &deposited{bootTime(), name, number, id}})
			return
		}
		select {
		case <-d.quiet:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (d *depositing) try(account int, id string) (string, uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), repeatAfter)
	defer cancel()
	name := nameOf(account)
	var reply proto.Message
	var err error
	if account == accounts {
		reply, err = d.bank.Ask(ctx, wrapperspb.String(id))
	} else {
		reply, err = d.region.Ref(name).Ask(ctx, wrapperspb.String(id))
	}
	number, err := sharding.As[*wrapperspb.UInt64Value](reply, err)
	return name, number.GetValue(), err
}

// nameOf returns the name of an account; the last is that of the singleton.
func nameOf(account int) string {
	if account == accounts {
		return "bank"
	}
	return "account-" + strconv.Itoa(account)
}

// deposits lists what all accounts hold.
func (m *member) deposits() (all []string) {
	dd := m.dd.Load()
	if dd == nil {
		return nil
	}
	now := dd.Snapshot()
	for key, book := range books.Of(now) {
		name, _ := books.Rest(key)
		for number, r := range book.All() {
			id, _ := r.Value()
			all = append(all, deposited{Account: name, Number: number, ID: id}.String())
		}
	}
	return all
}
