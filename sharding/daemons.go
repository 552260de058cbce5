package sharding

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
)

// NewDaemons prepares this member to run its part of cfg.Shards workers. Call it with the same
// Config on every member with Config.Role before the member starts, and call NewDaemonsProxy on the
// other members.
//
// Each worker is a shard of its own, whose number is the worker's id: "0", "1" and so on. A worker
// is created as soon as a member holds its lease, without a message. If it stops, fails, or is
// asked to stop by Passivate or Forget, it is created again after a pause of 100ms, which grows to
// 10s while it fails. If its member leaves or dies it moves to another one, and when members join,
// some workers move to them, so that every member runs about as many and each worker runs once. The
// guarantees, and the duties of a worker, are those of any entity; see the package comment. A
// worker that works without messages must check Entity.Check or Entity.Context before each step.
//
// Send to a worker through Ref, with its number as text; other ids are ErrInvalid.
//
// Config.Shards is required. Idle, Limit and Remember must not be set. The error matches ErrInvalid
// as for New.
func NewDaemons[Msg proto.Message](system *actor.ActorSystem, session *coordination.Session,
	replicator *distributeddata.Replicator, cfg Config, produce func(Entity) actor.Actor,
) (*Region[Msg], error) {
	errs := append(checkHost(session, cfg, produce == nil), checkDaemons(cfg))
	return begin[Msg](&binding{system: system, cfg: cfg.daemons(), session: session,
		data: replicator, produce: produce}, errs...)
}

// NewDaemonsProxy prepares this member to send to workers, as NewProxy does for entities.
func NewDaemonsProxy[Msg proto.Message](system *actor.ActorSystem,
	replicator *distributeddata.Replicator, cfg Config) (*Region[Msg], error) {
	return begin[Msg](&binding{system: system, cfg: cfg.daemons(), data: replicator},
		checkDaemons(cfg))
}

func (c Config) daemons() Config {
	c.numbered = true
	return c
}

func checkDaemons(c Config) error {
	var errs []error
	if c.Shards == 0 {
		errs = append(errs, fmt.Errorf(
			"%w: Shards is 0, it must be the number of workers, from 1 to %d", ErrInvalid,
			maxShards))
	}
	if c.Idle != 0 || c.Limit != 0 || c.Remember {
		errs = append(errs, fmt.Errorf(
			"%w: workers are kept running, so Idle (%v), Limit (%d) and Remember must not be set",
			ErrInvalid, c.Idle, c.Limit))
	}
	return errors.Join(errs...)
}

// shardOf returns the shard of an entity. The error matches ErrInvalid if the id is not a worker's.
func (c *Config) shardOf(id string) (int, error) {
	if !c.numbered {
		return shardOf(id, c.Shards), nil
	}
	return workerOf(id, c.Shards)
}

func workerOf(id string, workers int) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n < 0 || n >= workers || strconv.Itoa(n) != id {
		return 0, fmt.Errorf("%w: %.80q is not a worker, workers are numbered from 0 to %d",
			ErrInvalid, id, workers-1)
	}
	return n, nil
}

// owns returns an error that matches ErrInvalid if the entity belongs to another shard.
func (s *hostedShard) owns(id string) error {
	n, err := s.binding.cfg.shardOf(id)
	if err == nil && n != s.n {
		err = fmt.Errorf("%w: entity %.80q belongs to shard %d, not %d", ErrInvalid, id, n, s.n)
	}
	return err
}
