package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding"
)

// Message is a line sent to a room, as JSON. A room answers with the line's number. A real program
// would define its own protobuf messages.
type Message = *wrapperspb.StringValue

// line is what a person says. Nr rises with each new line of a person, in whatever room, so that a
// room recognizes a line that it has heard before.
type line struct {
	From string
	Nr   int
	Text string
}

// lines are the lines of a room, by number. If a host that was cut off and its successor use the
// same number, the line with the higher token stays. The other one was not acknowledged, but a
// person may have heard it.
type lines = crdt.ORMap[uint64, fence.Register[line]]

// Said has the last lines of each room. Every member has a copy.
var Said = distributeddata.NewPrefix("said-in-", lines{})

// kept is the number of lines that are kept of each room.
const kept = 500

// room is an entity that numbers the lines said in it.
type room struct {
	sharding.Entity
	dd   *distributeddata.Replicator
	last uint64           // number of the last line
	of   map[string]spoke // by person
}

// spoke is the last line of a person.
type spoke struct {
	nr     int
	number uint64
}

// open creates a room. It continues after the last line of the room's earlier incarnations, here or
// at other members. These wrote to a majority, so a majority read finds all acknowledged lines.
func open(e sharding.Entity, dd *distributeddata.Replicator) actor.Actor {
	said, err := Said.Key(e.ID).Get(e.Context(), dd, distributeddata.Majority)
	if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
		return nil // open is called again after a pause; messages wait
	}
	r := &room{Entity: e, dd: dd, of: map[string]spoke{}}
	for number, register := range said.All() {
		l, _ := register.Value()
		r.note(number, l)
	}
	return r
}

func (r *room) note(number uint64, l line) {
	r.last = max(r.last, number)
	if l.Nr > r.of[l.From].nr {
		r.of[l.From] = spoke{l.Nr, number}
	}
}

// Receive implements actor.Actor.
func (r *room) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(Message)
	if !ok {
		return
	}
	var l line
	if err := json.Unmarshal([]byte(m.Value), &l); err != nil {
		return
	}
	number, before := r.last+1, r.of[l.From]
	switch {
	case l.Nr == before.nr: // the person got no answer
		number = before.number
	case l.Nr < before.nr: // the person got an answer elsewhere
		return
	}
	if err := r.write(number, l); err != nil {
		// The line may or may not be stored. The next incarnation reads what is stored, and the
		// person repeats the line.
		ctx.Stop(ctx.Self())
		return
	}
	r.note(number, l)
	ctx.Respond(wrapperspb.UInt64(number))
}

// write stores a line at a majority. Meanwhile the room waits, and no other room.
func (r *room) write(number uint64, l line) error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	_, err := Said.Key(r.ID).Update(ctx, r.dd, func(w *crdt.Writer, said *lines) error {
		said.Update(w, number, func(v *fence.Register[line]) { v.Set(w, r.Token(), l) })
		if number > kept {
			said.Remove(w, number-kept)
		}
		return nil
	}, distributeddata.Majority)
	return err
}
