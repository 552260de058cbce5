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
	// flush is how much time the last messages to other members have before remoting closes.
	flush = 20 * time.Millisecond
	// hangUp is how long the orderly shutdown of remoting may take before its port is closed
	// anyway.
	hangUp = 500 * time.Millisecond
	// lingering is how long actors have to stop after they were asked to.
	lingering = time.Second
)

// leave stops the cluster once the traffic of this member has ended: Proto.Actor's remoting cannot
// handle sends while it stops. It is called once.
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

// depart does what cluster.Shutdown does, with a time bound and without its sleep of two seconds:
// the provider announces that this member has left, remoting closes, and the remaining actors are
// stopped.
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

// closeRemoting closes remoting gracefully, or forcibly if that fails. Proto.Actor's graceful stop
// is delayed for ten seconds by a writer that tries to reach a dead peer, and panics if a peer
// hangs up at the same moment. The port would then still be open, and the next incarnation could
// not listen on it.
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

// part runs one step and converts a panic of Proto.Actor into an error.
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

// abandon stops the started parts of a member whose start failed. Which parts exist depends on
// where the start failed. Stopping a part that does not exist panics; those panics carry no
// information and are ignored.
func abandon(c *cluster.Cluster) error {
	time.Sleep(flush) // gRPC's server must not be stopped before it has begun to serve
	_ = part("gossip", func() error { c.Gossip.Shutdown(); return nil })
	_ = part("actor system", func() error { c.ActorSystem.Shutdown(); return nil })
	_ = part("remoting", func() error { c.Remote.Shutdown(false); return nil })
	return nil
}

// remoting is the name of the actor that stops when its last writer has given up; it has already
// been asked to stop.
const remoting = "EndpointSupervisor"

// stopActors stops every remaining actor, and waits up to lingering for them to stop. An actor that
// kept running would keep its whole actor system alive and work alongside the next incarnation.
func stopActors(system *actor.ActorSystem) {
	for deadline := time.Now().Add(lingering); ; time.Sleep(2 * time.Millisecond) {
		left := map[string]*actor.ActorProcess{} // stopped outside IterCb, which holds a lock
		for _, bucket := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
			bucket.IterCb(func(id string, v any) {
				if p, ok := v.(*actor.ActorProcess); ok && !strings.Contains(id, "/") &&
					id != remoting {
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
