package sharding

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
)

// NewDaemons prepares this member for its part in running cfg.Shards workers, as Daemons. Call it with the same Config on
// every member with Config.Role, before the member starts; NewDaemonsProxy elsewhere.
//
// Each worker is a shard of its own, whose number is its id: "0", "1" and so on. It is made as soon as a member has its
// lease, without a message, and again if it stops, fails, or is asked to end by Passivate or Forget, after a pause of 100ms
// that grows to 10s while it fails. If its member leaves or dies it moves to another one, and when members come some
// move to them: so as many run at each, and each of them once. What is guaranteed, and what a worker has to do for it, is as
// for any entity; see the package comment. A worker that works without messages looks at Entity.Check, or at
// Entity.Context, before each step.
//
// A worker is sent to by Ref, with its number as text; other ids are ErrInvalid.
//
// Config.Shards is required. Idle, Limit and Remember must not be set. The error is ErrInvalid as for New.
func NewDaemons[Msg any](system *actor.ActorSystem, session *coordination.Session, replicator *distributeddata.Replicator,
	cfg Config, produce func(Entity) actor.Actor,
) (*Region[Msg], error) {
	errs := append(checkHost(session, cfg, produce), checkDaemons(cfg))
	return begin[Msg](&life{system: system, cfg: cfg.daemons(), session: session, data: replicator, produce: produce}, errs...)
}

// NewDaemonsProxy prepares this member for sending to workers, as NewProxy does for entities.
func NewDaemonsProxy[Msg any](system *actor.ActorSystem, replicator *distributeddata.Replicator, cfg Config) (*Region[Msg], error) {
	return begin[Msg](&life{system: system, cfg: cfg.daemons(), data: replicator}, checkProxy(cfg), checkDaemons(cfg))
}

func (c Config) daemons() Config {
	c.numbered = true
	return c
}

func checkDaemons(c Config) error {
	var errs []error
	if c.Shards == 0 {
		errs = append(errs, fmt.Errorf("%w: Shards is 0, it must be the number of workers, from 1 to %d", ErrInvalid, maxShards))
	}
	if c.Idle != 0 || c.Limit != 0 || c.Remember {
		errs = append(errs, fmt.Errorf("%w: workers are kept running, so Idle (%v), Limit (%d) and Remember must not be set", ErrInvalid, c.Idle, c.Limit))
	}
	return errors.Join(errs...)
}

// shardOf returns the shard of an entity. The error is ErrInvalid for an id that is no worker's.
func (c Config) shardOf(id string) (int, error) {
	if !c.numbered {
		return shardOf(id, c.Shards), nil
	}
	return workerOf(id, c.Shards)
}

func workerOf(id string, workers int) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n < 0 || n >= workers || strconv.Itoa(n) != id {
		return 0, fmt.Errorf("%w: %.80q is no worker, they are from 0 to %d", ErrInvalid, id, workers-1)
	}
	return n, nil
}

// strange tells that an entity cannot be of the shard: a peer has made a mistake.
func (p *place) strange(id string) bool { return p.life.cfg.numbered && id != strconv.Itoa(p.n) }
