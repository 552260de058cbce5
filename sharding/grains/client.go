package grains

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/contain"
)

// ingressName is the process of each member that finds grains for clients.
const ingressName = "concord-grains"

// maxAsking bounds the grains that a member looks for at the same time on behalf of clients.
const maxAsking = 1000

// ingress answers clients. It is not an actor, since it must not wait for one grain before another.
type ingress struct {
	lookup *lookup
	turns  chan struct{}
}

// SendUserMessage implements actor.Process.
func (i *ingress) SendUserMessage(self *actor.PID, message any) {
	_, msg, sender := actor.UnwrapEnvelope(message)
	request, ok := msg.(*cluster.ActivationRequest)
	if !ok || sender == nil {
		contain.DeadLetter(i.lookup.system, self, message)
		return
	}
	if request.ClusterIdentity == nil { // another member asks whether the lookup is this one
		contain.Send(i.lookup.system, sender, &cluster.ActivationResponse{Failed: true})
		return
	}
	select {
	case i.turns <- struct{}{}:
	default:
		contain.Send(i.lookup.system, sender, &cluster.ActivationResponse{Failed: true})
		return
	}
	go func() {
		defer func() { <-i.turns }()
		pid := i.lookup.Get(request.ClusterIdentity)
		contain.Send(i.lookup.system, sender, &cluster.ActivationResponse{Pid: pid,
			Failed: pid == nil})
	}()
}

// SendSystemMessage implements actor.Process. It ignores system messages.
func (i *ingress) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (i *ingress) Stop(*actor.PID) {}

// client finds grains through the members that its provider lists.
type client struct {
	system *actor.ActorSystem
	events *eventstream.Subscription

	mu      sync.Mutex
	members []string // addresses
}

func newClient(system *actor.ActorSystem) *client {
	c := &client{system: system}
	c.events = system.EventStream.Subscribe(func(e any) {
		if t, ok := e.(*cluster.ClusterTopology); ok {
			c.list(t)
		}
	})
	return c
}

// list runs under the lock of Proto.Actor's member list.
func (c *client) list(t *cluster.ClusterTopology) {
	members := make([]string, 0, len(t.Members))
	for _, m := range t.Members {
		members = append(members, m.Address())
	}
	slices.Sort(members)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = slices.Compact(members)
}

func (c *client) close() { c.system.EventStream.Unsubscribe(c.events) }

var errNoMembers = errors.New("grains: the provider of this client lists no member")

// find asks one member after the other, beginning with one that depends on the grain, until one
// has found it or ctx ends.
func (c *client) find(ctx context.Context, of *cluster.ClusterIdentity) (*actor.PID, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of.Kind + "/" + of.Identity))
	for i := int(h.Sum32() >> 1); ; i++ {
		pid, err := c.ask(ctx, i, of)
		if err == nil {
			return pid, nil
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// askAgain is the pause after a member that has not found a grain. A member that does not answer
// within askWithin is not waited for.
const (
	askAgain  = 50 * time.Millisecond
	askWithin = 2 * time.Second
)

func (c *client) ask(ctx context.Context, i int, of *cluster.ClusterIdentity) (*actor.PID, error) {
	c.mu.Lock()
	members := c.members
	c.mu.Unlock()
	if len(members) == 0 {
		return nil, errNoMembers
	}
	at := members[i%len(members)]
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	res, err := ask.Request(ctx, c.system, actor.NewPID(at, ingressName),
		&cluster.ActivationRequest{ClusterIdentity: of})
	if err != nil {
		return nil, fmt.Errorf("grains: member %s: %w", at, err)
	}
	if a, ok := res.(*cluster.ActivationResponse); ok && a.Pid != nil {
		return a.Pid, nil
	}
	return nil, fmt.Errorf("grains: member %s has not found the grain: its log has the reason", at)
}
