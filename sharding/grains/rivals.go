package grains

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/sharding"
)

// rivals are the members that run kinds of this member and have another identity lookup, as when a
// program is replaced member by member. While there are any, no grain is looked up, since it may be
// active there.
type rivals struct {
	system *actor.ActorSystem
	kinds  map[string]bool // of this member
	events *eventstream.Subscription
	alive  context.Context
	end    context.CancelFunc

	first chan struct{} // closed when one was found

	mu    sync.Mutex
	asked map[string]bool   // ids of members that are listed
	found map[string]string // addresses by id
	any   bool              // one was found
}

func newRivals(system *actor.ActorSystem, kinds map[string]*kind) *rivals {
	r := &rivals{system: system, kinds: map[string]bool{}, asked: map[string]bool{},
		found: map[string]string{}, first: make(chan struct{})}
	for name := range kinds {
		if name != cluster.TopicActorKind && !strings.HasPrefix(name, membership.RolePrefix) &&
			!strings.HasPrefix(name, membership.VersionPrefix) {
			r.kinds[name] = true
		}
	}
	r.alive, r.end = context.WithCancel(context.Background())
	r.events = system.EventStream.Subscribe(func(e any) {
		if t, ok := e.(*cluster.ClusterTopology); ok {
			r.list(t)
		}
	})
	return r
}

func (r *rivals) close() {
	r.system.EventStream.Unsubscribe(r.events)
	r.end()
}

// list runs under the lock of Proto.Actor's member list.
func (r *rivals) list(t *cluster.ClusterTopology) {
	r.mu.Lock()
	defer r.mu.Unlock()
	listed := map[string]bool{}
	for _, m := range t.Members {
		listed[m.Id] = true
		if m.Address() != r.system.Address() && !r.asked[m.Id] &&
			slices.ContainsFunc(m.Kinds, func(k string) bool { return r.kinds[k] }) {
			r.asked[m.Id] = true
			go r.ask(m.Id, m.Address())
		}
	}
	for id := range r.asked {
		if !listed[id] {
			delete(r.asked, id)
			delete(r.found, id)
		}
	}
}

// surely is how many dead letters in a row mean that a member does not have this lookup. One may
// also come from this system, whose connection to a former process at the address has ended.
const surely = 3

// ask asks a member whether it has this lookup, until it answers or is not listed any more.
func (r *rivals) ask(id, address string) {
	dead := 0
	for pause := 500 * time.Millisecond; ; pause = min(2*pause, time.Minute) {
		ctx, cancel := context.WithTimeout(r.alive, askWithin)
		_, err := ask.Request(ctx, r.system, actor.NewPID(address, ingressName),
			&cluster.ActivationRequest{})
		cancel()
		switch {
		case err == nil:
			return
		case errors.Is(err, ask.ErrDeadLetter):
			if dead++; dead < surely {
				break
			}
			if r.find(id, address) {
				r.system.Logger().Error("a member runs the same kinds with another identity lookup: grains may be active there too. Stop all members, and start them with one lookup",
					slog.String("address", address), slog.String("member", id))
			}
			return
		default:
			dead = 0
		}
		select {
		case <-time.After(pause):
		case <-r.alive.Done():
			return
		}
		if !r.listed(id) {
			return
		}
	}
}

func (r *rivals) listed(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[id]
}

func (r *rivals) find(id, address string) (listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked[id] {
		r.found[id] = address
		if !r.any {
			r.any = true
			close(r.first)
		}
	}
	return r.asked[id]
}

// none returns an error when a rival is found before ctx has ended.
func (r *rivals) none(ctx context.Context) error {
	select {
	case <-r.first:
		return r.check()
	case <-ctx.Done():
		return nil
	}
}

// check returns an error while there are rivals.
func (r *rivals) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.found) == 0 {
		return nil
	}
	return fmt.Errorf("%w: grains: another identity lookup is used at %s", sharding.ErrInvalid,
		strings.Join(slices.Sorted(maps.Values(r.found)), ", "))
}
