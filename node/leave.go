package node

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/membership"
)

const (
	// flush is how long the last messages to others have before remoting closes.
	flush = 20 * time.Millisecond
	// hangUp is how long remoting may take to hang up in order before its port is closed all the same.
	hangUp = 500 * time.Millisecond
	// lingering is how long actors have to end after they were told to.
	lingering = time.Second
)

// leave stops the cluster once our own traffic has ended: Proto.Actor's remoting does not stand sends while
// it stops. It is called once.
func leave(c *cluster.Cluster, r *run, begun bool, members *membership.Service) error {
	<-members.Stopped()
	<-r.tried
	if !begun {
		stopActors(c.ActorSystem)
		return nil
	}
	if r.err != nil {
		defer stopActors(c.ActorSystem)
		return abandon(c)
	}
	return depart(c)
}

// depart does what cluster.Shutdown does, without its sleep of two seconds, and bounded: others hear from the
// provider that this member has left, remoting closes, and what still runs is stopped.
func depart(c *cluster.Cluster) error {
	errs := []error{
		part("provider", func() error { return c.Config.ClusterProvider.Shutdown(true) }),
		part("identity lookup", func() error { c.IdentityLookup.Shutdown(); return nil }),
		part("gossip", func() error { c.Gossip.Shutdown(); return nil }),
	}
	time.Sleep(flush)
	errs = append(errs, part("actor system", func() error { c.ActorSystem.Shutdown(); return nil }))
	errs = append(errs, closeRemoting(c.Remote))
	stopActors(c.ActorSystem)
	return errors.Join(errs...)
}

// closeRemoting closes remoting with good-byes, or else without. Proto.Actor's orderly stop is held up for ten seconds
// by a writer that tries to reach a dead peer, and panics if a peer hangs up at the same moment; its port would
// then be open still, and the next life could not have it.
func closeRemoting(r interface{ Shutdown(graceful bool) }) error {
	closed := make(chan error, 1)
	go func() { closed <- part("remoting", func() error { r.Shutdown(true); return nil }) }()
	select {
	case err := <-closed:
		if err == nil {
			return nil
		}
	case <-time.After(hangUp):
	}
	return part("remoting", func() error { r.Shutdown(false); return nil })
}

// part runs one step and turns a panic of Proto.Actor into an error.
func part(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}()
	return f()
}

// abandon ends what there is of a member whose start failed, which depends on where it did: what was not there yet
// panics, and says nothing new.
func abandon(c *cluster.Cluster) error {
	time.Sleep(flush) // gRPC's server does not stand being stopped before it has begun
	_ = part("gossip", func() error { c.Gossip.Shutdown(); return nil })
	_ = part("actor system", func() error { c.ActorSystem.Shutdown(); return nil })
	_ = part("remoting", func() error { c.Remote.Shutdown(false); return nil })
	return nil
}

// remoting is the name of the actor that ends when its last writer has given up; it has been told to.
const remoting = "EndpointSupervisor"

// stopActors stops every actor that is left, and waits a moment for them to end. An actor that went on would keep
// its whole actor system alive, and work beside the next life.
func stopActors(system *actor.ActorSystem) {
	for deadline := time.Now().Add(lingering); ; time.Sleep(2 * time.Millisecond) {
		left := map[string]*actor.ActorProcess{} // stopped outside IterCb, which holds a lock
		for _, bucket := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
			bucket.IterCb(func(id string, v any) {
				if p, ok := v.(*actor.ActorProcess); ok && !strings.Contains(id, "/") && id != remoting {
					left[id] = p
				}
			})
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return
		}
		for id, p := range left {
			p.Stop(actor.NewPID(system.Address(), id))
		}
	}
}
