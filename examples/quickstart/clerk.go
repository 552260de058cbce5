package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// The clerk gives each order the next number. The cluster has one clerk, a singleton that runs only
// while its lease is held. But a paused process can wake up as a clerk that does not know yet that
// another one has taken over. The book therefore relies on tokens: each tenure of the lease has a
// larger one. A new clerk records how many orders it found before it assigns a number, and readers
// ignore orders that an older clerk writes beyond that count.

// order is one line of the book.
type order struct {
	ID    string             `json:"id"`
	Token coordination.Token `json:"token"` // of the clerk that wrote it
}

// The book: orders by number, and, by token, how many valid orders each clerk found when it took
// over.
var (
	orders  = distributeddata.NewKey("book/orders", crdt.NewLWWMap[int64](nil, crdt.JSON[order]()))
	tenures = distributeddata.NewKey("book/tenures", crdt.LWWMap[uint64, int64]{})
)

// readBook returns the valid orders as numbers by order id, from this node's own replica.
func readBook(ctx context.Context, dd *distributeddata.Replicator) (map[string]int64, error) {
	took, err := tenures.Get(ctx, dd)
	if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
		return nil, err
	}
	lines, err := orders.Get(ctx, dd)
	if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
		return nil, err
	}
	valid := map[string]int64{}
	for number, o := range lines.All() {
		void := false
		for token, found := range took.All() {
			void = void || token > uint64(o.Token) && number > found
		}
		if !void {
			valid[o.ID] = number
		}
	}
	return valid, nil
}

// clerk is the singleton. It writes orders in batches: orders that arrive while a batch is written
// form the next one.
type clerk struct {
	tenure  coordination.Tenure
	dd      *distributeddata.Replicator
	numbers map[string]int64 // of every order in the book; nil until it has been read
	waiting []checkout
	writing []checkout // the batch in flight to a majority
}

type checkout struct {
	id   string
	from *actor.PID
}

type (
	opened  struct{ err error } // the book has been read, and the tenure recorded
	written struct{ err error } // a majority has the batch
)

func newClerk(dd *distributeddata.Replicator) func(coordination.Tenure) actor.Actor {
	return func(t coordination.Tenure) actor.Actor { return &clerk{tenure: t, dd: dd} }
}

// Receive implements actor.Actor.
func (c *clerk) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.open(ctx)
	case *opened:
		if m.err != nil || c.adopt(ctx) != nil {
			c.open(ctx) // not enough nodes now; the messages wait
		}
	case *wrapperspb.StringValue:
		c.waiting = append(c.waiting, checkout{m.Value, ctx.Sender()})
		c.write(ctx)
	case *written:
		c.reply(ctx, m.err)
	}
}

// open reads all acknowledged orders: a majority read sees all of them.
func (c *clerk) open(ctx actor.Context) {
	c.numbers = nil
	ctx.Request(c.dd.PID(), &distributeddata.Get[crdt.LWWMap[int64, order]]{
		Key: orders, At: distributeddata.Majority,
		Adapt: func(r *distributeddata.GetResponse[crdt.LWWMap[int64, order]]) any {
			_, err := r.Result()
			if errors.Is(err, distributeddata.ErrNotFound) {
				err = nil
			}
			return &opened{err}
		},
	})
}

// adopt takes over the orders in the book, and voids later writes of older clerks in advance.
func (c *clerk) adopt(ctx actor.Context) error {
	book, err := readBook(context.Background(), c.dd)
	if err != nil {
		return err
	}
	token, found := uint64(c.tenure.Token()), int64(len(book))
	ctx.Request(c.dd.PID(), &distributeddata.Update[crdt.LWWMap[uint64, int64]]{
		Key: tenures, At: distributeddata.Majority,
		Modify: func(w *crdt.Writer, t *crdt.LWWMap[uint64, int64]) error {
			if _, ok := t.Get(token); !ok {
				t.Set(w, token, found)
			}
			return nil
		},
		Adapt: func(r *distributeddata.UpdateResponse[crdt.LWWMap[uint64, int64]]) any {
			_, err := r.Result()
			return &written{err}
		},
	})
	c.numbers = book
	c.writing = []checkout{} // no order is served before the book contains the tenure
	return nil
}

// write starts the next batch, unless one is in flight.
func (c *clerk) write(ctx actor.Context) {
	if c.numbers == nil || c.writing != nil || len(c.waiting) == 0 || c.tenure.Check() != nil {
		return
	}
	c.writing, c.waiting = c.waiting, nil
	for _, o := range c.writing {
		if _, known := c.numbers[o.id]; !known {
			c.numbers[o.id] = int64(len(c.numbers)) + 1
		}
	}
	c.put(ctx)
}

// put writes the batch. Writing it again does no harm.
func (c *clerk) put(ctx actor.Context) {
	token := c.tenure.Token()
	batch := map[int64]string{}
	for _, o := range c.writing {
		batch[c.numbers[o.id]] = o.id
	}
	ctx.Request(c.dd.PID(), &distributeddata.Update[crdt.LWWMap[int64, order]]{
		Key: orders, At: distributeddata.Majority,
		Modify: func(w *crdt.Writer, book *crdt.LWWMap[int64, order]) error {
			for number, id := range batch {
				if o, ok := book.Get(number); ok && o.Token > token {
					return fmt.Errorf("number %d was given out under token %v, this clerk has %v",
						number, o.Token, token)
				} else if !ok || o.Token < token {
					book.SetAt(w, number, order{id, token}, uint64(token))
				}
			}
			return nil
		},
		Adapt: func(r *distributeddata.UpdateResponse[crdt.LWWMap[int64, order]]) any {
			_, err := r.Result()
			return &written{err}
		},
	})
}

// reply answers the written batch if the lease is still held: an answer is a promise.
func (c *clerk) reply(ctx actor.Context, err error) {
	switch {
	case c.tenure.Check() != nil:
		return // clients retry, and find the next clerk
	case err != nil && len(c.writing) == 0:
		c.open(ctx)
		c.writing = nil
		return
	case err != nil:
		c.put(ctx)
		return
	}
	for _, o := range c.writing {
		ctx.Send(o.from, wrapperspb.Int64(c.numbers[o.id]))
	}
	c.writing = nil
	c.write(ctx)
}
