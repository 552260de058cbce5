//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
)

// shards is the number of shards of Concord and of Pekko.
const shards = 99

// shardHost is a member that hosts entities. Its commands, each of which is answered, are:
//
//	op=tell place=… entities=E n=N ms=T …     N messages to E entities in turn, or for T ms if N is
//	                                          0, which ends when all are handled and counted:
//	                                          done n=… ns=… p50=0
//	op=request place=… entities=E callers=C ms=T …
//	                                          requests for T ms, C under way: done …
//	op=start place=… n=N callers=C …          requests to N new entities, C under way: done …
//	op=move entities=E n=N ms=T …             N moves of a shard with E entities, see type moving:
//	                                          done n=N still0=… dark0=… lost0=… still1=… …
//	probe                                     waits until an entity of each shard has answered:
//	                                          there at=…
//	heap                                      heap bytes=…
//
// place is local or remote. A message is a string; with a question mark in front an entity answers
// with the number of its messages. class Shards of lab/bench/pekko does the same.
type shardHost struct {
	root    *actor.RootContext
	started int

	ids func(prefix string, local bool, n int) ([]entity, error)
	// probed has an entity of each shard; nil without shards.
	probed []entity
	moving *moving // nil without shards
}

// entity is the address of an entity, with the messages that are sent to it.
type entity interface {
	tell() error
	ask(timeout time.Duration) (count int64, err error)
	request(ctx actor.Context)
}

var (
	told  = wrapperspb.String("entity")
	asked = wrapperspb.String("?entity")
)

// counting is an entity.
type counting struct{ count int64 }

// Receive implements actor.Actor.
func (c *counting) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		c.count++
		if strings.HasPrefix(m.Value, "?") {
			ctx.Respond(wrapperspb.Int64(c.count))
		}
	}
}

func (h *shardHost) obey(line string) (string, error) {
	if line == "heap" {
		return heapBytes(), nil
	}
	if line == "probe" {
		at, err := h.probe(awaitTimeout * 4)
		return fmt.Sprintf("there at=%d", at.UnixNano()), err
	}
	var op, place string
	var entities, callers, n, ms int
	if _, err := fmt.Sscanf(line, "op=%s place=%s entities=%d callers=%d n=%d ms=%d", &op, &place,
		&entities, &callers, &n, &ms); err != nil {
		return "", fmt.Errorf("command %q: %w", line, err)
	}
	local := place == "local"
	switch op {
	case "tell":
		ids, err := h.ids("e", local, entities)
		if err != nil {
			return "", err
		}
		return h.tell(ids, n, time.Duration(ms)*time.Millisecond)
	case "request":
		ids, err := h.ids("e", local, entities)
		if err != nil {
			return "", err
		}
		return h.request(ids, 0, callers, time.Duration(ms)*time.Millisecond)
	case "start":
		h.started++
		ids, err := h.ids(fmt.Sprintf("s%d-", h.started), local, n)
		if err != nil {
			return "", err
		}
		return h.request(ids, n, callers, 0)
	case "move":
		return h.moving.times(n, entities, time.Duration(ms)*time.Millisecond)
	}
	return "", fmt.Errorf("no such command: %q", line)
}

// probe waits until an entity of each shard has answered, and returns when the last did.
func (h *shardHost) probe(timeout time.Duration) (time.Time, error) {
	var all sync.WaitGroup
	deadline := time.Now().Add(timeout)
	var late atomic.Int64
	for _, e := range h.probed {
		all.Go(func() {
			for {
				if _, err := e.ask(200 * time.Millisecond); err == nil {
					return
				}
				if time.Now().After(deadline) {
					late.Add(1)
					return
				}
			}
		})
	}
	all.Wait()
	if n := late.Load(); n > 0 {
		return time.Now(), fmt.Errorf("%d shards do not answer within %v", n, timeout)
	}
	return time.Now(), nil
}

// window is the number of tells between two requests. Two of these may be unanswered: Pekko drops
// messages if more than 3,072 wait for a connection.
const window = 1000

// tell tells n messages to entities in turn, or as many as it can in the time d if n is 0. It ends
// when each entity has handled all of them.
func (h *shardHost) tell(ids []entity, n int, d time.Duration) (string, error) {
	before, err := counted(ids)
	if err != nil {
		return "", err
	}
	windows := make(chan struct{}, 2)
	var failed atomic.Pointer[error]
	begin, told := time.Now(), 0
	for n > 0 && told < n || n == 0 && (told%window != 0 || time.Since(begin) < d) {
		if told%window == 0 {
			windows <- struct{}{}
			e := ids[told/window%len(ids)]
			go func() {
				if _, err := e.ask(awaitTimeout); err != nil {
					failed.Store(&err)
				}
				<-windows
			}()
		} else if err := ids[told%len(ids)].tell(); err != nil {
			return "", err
		}
		told++
	}
	for range cap(windows) { // until all requests are answered
		windows <- struct{}{}
	}
	after, err := counted(ids)
	took := time.Since(begin)
	switch {
	case err != nil:
		return "", err
	case failed.Load() != nil:
		return "", *failed.Load()
	case after-before != int64(told+len(ids)):
		return "", fmt.Errorf("of %d messages %d were handled", told,
			after-before-int64(len(ids)))
	}
	return fmt.Sprintf("done n=%d ns=%d p50=0", told, took.Nanoseconds()), nil
}

// counted asks each entity for the number of its messages, this one included, and returns the sum.
func counted(ids []entity) (sum int64, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, e := range ids {
		all.Go(func() {
			n, bad := e.ask(awaitTimeout)
			mu.Lock()
			defer mu.Unlock()
			sum, err = sum+n, errors.Join(err, bad)
		})
	}
	all.Wait()
	return sum, err
}

// request lets actors send requests to entities in turn, each one after its previous answer: n, or
// for d if n is 0.
func (h *shardHost) request(ids []entity, n, callers int, d time.Duration) (string, error) {
	l := &load{member: &member{root: h.root}, callers: callers, n: int64(n),
		next: new(atomic.Int64)}
	if n == 0 {
		defer time.AfterFunc(d, func() { l.stop.Store(true) }).Stop()
	}
	begin := time.Now()
	var ended sync.WaitGroup
	for range callers {
		ended.Add(1)
		h.root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &asker{caller{load: l, ended: &ended}, ids}
		}))
	}
	ended.Wait()
	return fmt.Sprintf("done n=%d ns=%d p50=%d", l.done.Load(), time.Since(begin).Nanoseconds(),
		l.median()), nil
}

// asker is a caller of entities.
type asker struct {
	caller

	ids []entity
}

// Receive implements actor.Actor.
func (a *asker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Stopped:
		a.load.done.Add(a.done)
		a.ended.Done()
		return
	case *actor.Started:
	case *wrapperspb.Int64Value:
		a.answered()
	default:
		return
	}
	i, ok := a.take()
	if !ok {
		ctx.Stop(ctx.Self())
		return
	}
	if a.callers == 1 {
		a.sent = time.Now()
	}
	a.ids[i%len(a.ids)].request(ctx)
}

// sharded is an entity of Concord.
type sharded struct{ ref sharding.Ref[proto.Message] }

func (s sharded) tell() error               { return s.ref.Tell(told) }
func (s sharded) request(ctx actor.Context) { _ = s.ref.Request(ctx, asked) }

func (s sharded) ask(timeout time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	n, err := sharding.As[*wrapperspb.Int64Value](s.ref.Ask(ctx, asked))
	return n.GetValue(), err
}

// count returns the number in an answer of an entity.
func count(answer any, err error) (int64, error) {
	n, ok := answer.(*wrapperspb.Int64Value)
	if err == nil && !ok {
		err = fmt.Errorf("an entity answered with a %T", answer)
	}
	return n.GetValue(), err
}

// startShards starts a member that hosts entities of Concord, whose leases are files.
func startShards(index int, ports []int, leases string, ttl time.Duration) (*shardHost, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	system, c, err := newConcord(index, ports)
	if err != nil {
		return nil, err
	}
	session, err := openSession(leases, ttl)
	if err != nil {
		return nil, err
	}
	data, err := distributeddata.New(system, distributeddata.Config{MinMembers: clusterSize})
	if err != nil {
		return nil, err
	}
	region, err := sharding.New[proto.Message](system, session, data, sharding.Config{Type: "load",
		Shards: shards, MinMembers: clusterSize},
		func(sharding.Entity) actor.Actor { return &counting{} })
	if err != nil {
		return nil, err
	}
	moving, err := startMoving(index, ports, system, session, data)
	if err != nil {
		return nil, err
	}
	if err := node.Start(ctx, c); err != nil {
		return nil, err
	}
	h := &shardHost{root: system.Root, moving: moving}
	h.ids = func(prefix string, local bool, n int) (ids []entity, err error) {
		at := region.Status().Shards
		for i := 0; len(ids) < n; i++ {
			ref := region.Ref(fmt.Sprintf("%s%07d", prefix, i))
			if (at[ref.Shard()].State == sharding.Active) == local {
				ids = append(ids, sharded{ref})
			}
			if i > 100*n+1000 {
				return nil, errors.New("all shards are here, or none is")
			}
		}
		return ids, nil
	}
	for i := 0; len(h.probed) < shards; i++ {
		if ref := region.Ref(fmt.Sprint("p", i)); ref.Shard() == len(h.probed) {
			h.probed = append(h.probed, sharded{ref})
		}
	}
	_, err = h.probe(startTimeout)
	return h, err
}

// plain is an actor of bare Proto.Actor.
type plain struct {
	root *actor.RootContext
	pid  *actor.PID
}

func (p plain) tell() error               { p.root.Send(p.pid, told); return nil }
func (p plain) request(ctx actor.Context) { ctx.Request(p.pid, asked) }

func (p plain) ask(timeout time.Duration) (int64, error) {
	return count(p.root.RequestFuture(p.pid, asked, timeout).Result())
}

// spawned is an actor that is spawned by its first request.
type spawned struct {
	props *actor.Props
	name  string
}

var errSpawned = errors.New("an actor that is spawned by its first request takes only that")

func (s spawned) tell() error                      { return errSpawned }
func (s spawned) ask(time.Duration) (int64, error) { return 0, errSpawned }

func (s spawned) request(ctx actor.Context) {
	pid, err := ctx.ActorSystem().Root.SpawnNamed(s.props, s.name)
	if err == nil {
		ctx.Request(pid, asked)
	}
}

// startPlain starts a member with actors of bare Proto.Actor.
func startPlain(index int, ports []int) (*shardHost, error) {
	m, err := startBare(index, ports)
	if err != nil {
		return nil, err
	}
	props := actor.PropsFromProducer(func() actor.Actor { return &counting{} })
	for i := range mostEntities {
		if _, err := m.root.SpawnNamed(props, fmt.Sprintf("e%07d", i)); err != nil {
			return nil, err
		}
	}
	h := &shardHost{root: m.root}
	h.ids = func(prefix string, local bool, n int) (ids []entity, err error) {
		for i := range n {
			address := m.root.ActorSystem().Address()
			if !local { // at each of the others in turn
				address = fmt.Sprintf("127.0.0.1:%d", ports[1+i%2])
			}
			name := fmt.Sprintf("%s%07d", prefix, i)
			if prefix == "e" {
				ids = append(ids, plain{m.root, actor.NewPID(address, name)})
			} else {
				ids = append(ids, spawned{props, name})
			}
		}
		return ids, nil
	}
	return h, nil
}

// mostEntities is the largest number of entities that are told or asked in turn, or move.
const mostEntities = 1000
