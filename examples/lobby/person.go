package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

// persons are the persons in a room, with the member that each of them is connected to.
type persons = crdt.LWWMap[string, string]

// Present has the persons in each room. If a member crashes, another one must remove its persons:
// see examples/presence.
var Present = distributeddata.NewPrefix("present-in-", persons{})

// person talks and listens in all rooms, connected to one member. When that member leaves, the
// person continues at the next one.
type person struct {
	name  string
	lobby *lobby
	at    int // index of the member

	mu    sync.Mutex
	heard map[string][]heard // by room
}

// heard is a line as a person heard it.
type heard struct {
	number uint64
	token  coordination.Token // of the room when it numbered the line
	line   line
}

// enter lists the person in all rooms, as connected to its member.
func (p *person) enter(ctx context.Context) error {
	return p.present(ctx, func(tx *distributeddata.Tx, list *persons) {
		list.Set(tx.Writer, p.name, memberName(p.at))
	})
}

// exit removes the person from all rooms.
func (p *person) exit(ctx context.Context) error {
	return p.present(ctx, func(tx *distributeddata.Tx, list *persons) {
		list.Remove(tx.Writer, p.name)
	})
}

// present changes the lists of all rooms in one atomic update.
func (p *person) present(ctx context.Context,
	change func(tx *distributeddata.Tx, list *persons)) error {
	return distributeddata.Atomically(ctx, p.lobby.dd[p.at], func(tx *distributeddata.Tx) error {
		for _, room := range rooms {
			change(tx, Present.Key(room).In(tx))
		}
		return nil
	}, distributeddata.Majority)
}

// say repeats a line until its room has answered. The room numbers it once.
func (p *person) say(ctx context.Context, room string, l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		in, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := p.lobby.regions[p.at].Ref(room).Ask(in, wrapperspb.String(string(text)))
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sharding.ErrClosed): // the member has left
			p.at = (p.at + 1) % three.Members
			if err := p.enter(ctx); err != nil {
				return err
			}
		default: // a crash, a lost answer
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	return context.Cause(ctx)
}

// listen starts to hear the lines of all rooms.
func (p *person) listen(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	at, ended := p.at, make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; at = (at + 1) % three.Members {
			// Changes ends when the member has left
			for change := range Said.Changes(ctx, p.lobby.dd[at]) {
				room, _ := Said.Rest(change.Key)
				p.hear(room, change)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// hear adds the lines that are new to the person. A room writes a line when it has seen all earlier
// ones, so no member shows a line without them.
func (p *person) hear(room string, change *distributeddata.Changed[lines]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := uint64(0)
	if h := p.heard[room]; len(h) > 0 {
		last = h[len(h)-1].number
	}
	said, _ := change.Value.Diff(change.Old)
	for number, register := range said {
		if l, ok := register.Value(); ok && number > last {
			p.heard[room] = append(p.heard[room], heard{number, register.Token(), l})
		}
	}
}

// in returns what the person has heard in a room.
func (p *person) in(room string) []heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[room]
}
