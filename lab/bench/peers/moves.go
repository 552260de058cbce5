//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding"
)

// moving is a second type of entities, which has one shard. It moves between the members 1 and 2,
// and member 0 sends requests. An entity answers with the number of its member.
//
// Concord moves the shard as Region.Allocate asks; all settings are defaults, except External. In
// Pekko the client of ExternalShardAllocationStrategy asks for the move, and an entity is stopped
// by a PoisonPill, the default. The coordinator of Pekko looks for such requests every second, by
// default every ten: waiting for it is not counted, since the former home answers meanwhile.
//
// A move of Concord fails if a request is lost. Those that Pekko loses are counted: a host drops
// messages that reach it after it has been told of the hand-off and before it is asked for it.
type moving struct {
	entities []entity
	// allocate requests that the shard move to a member.
	allocate func(ctx context.Context, member int) error
}

// startMoving starts the type at one member of Concord.
func startMoving(index int, ports []int, system *actor.ActorSystem, session *coordination.Session,
	data *distributeddata.Replicator,
) (*moving, error) {
	region, err := sharding.New[proto.Message](system, session, data, sharding.Config{Type: "move",
		Shards: 1, MinMembers: clusterSize, External: true},
		func(sharding.Entity) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					ctx.Respond(wrapperspb.Int64(int64(index)))
				}
			})
		})
	if err != nil {
		return nil, err
	}
	m := &moving{allocate: func(ctx context.Context, member int) error {
		return region.Allocate(ctx, map[int]string{0: fmt.Sprintf("127.0.0.1:%d", ports[member])})
	}}
	for i := range mostEntities {
		m.entities = append(m.entities, sharded{region.Ref(fmt.Sprintf("m%07d", i))})
	}
	return m, nil
}

// times moves the shard n times, with as many entities, and returns the times of each move.
func (m *moving) times(n, entities int, around time.Duration) (string, error) {
	if m == nil || entities < 1 || entities > len(m.entities) {
		return "", fmt.Errorf("no shard of %d entities moves", entities)
	}
	home, err := m.entities[0].ask(awaitTimeout)
	if err == nil && home == 0 { // from here to a member that sends no requests
		home = 1
		_, _, err = m.once(m.entities[:entities], 0, home, 0)
	}
	var answer strings.Builder
	fmt.Fprintf(&answer, "done n=%d", n)
	for i := range n {
		if err != nil {
			return "", err
		}
		from := home
		home = clusterSize - from
		var still, dark time.Duration
		still, dark, err = m.once(m.entities[:entities], from, home, around)
		fmt.Fprintf(&answer, " still%d=%d dark%d=%d lost%d=0", i, still, i, dark, i)
	}
	return answer.String(), err
}

// once moves the shard with its entities between two members, while one of them gets a request
// every millisecond. dark is the longest time between two consecutive answers of which the later
// came at most the time around before or after the first answer of the new home. still is the same
// for the time 2 × around before the move is requested. Each request must be answered within
// answerTimeout.
func (m *moving) once(entities []entity, from, to int64, around time.Duration) (still,
	dark time.Duration, err error,
) {
	sum, err := counted(entities) // so that all run
	if err == nil && sum != from*int64(len(entities)) {
		err = fmt.Errorf("not all entities are at member %d", from)
	}
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), awaitTimeout)
	defer cancel()
	r := askEveryMillisecond(entities[0], to)
	time.Sleep(2 * around)
	begin := time.Now()
	err = m.allocate(ctx, int(to))
	if err == nil {
		err = r.await(ctx)
	}
	time.Sleep(around)
	answers, there, lost := r.end()
	if err := errors.Join(err, lost); err != nil {
		return 0, 0, fmt.Errorf("a move to member %d: %w", to, err)
	}
	return longest(answers, begin.Add(-2*around), begin),
		longest(answers, there.Add(-around), there.Add(around)), nil
}

// longest returns the longest time between two consecutive answers of which the later came from
// begin to end.
func longest(answers []time.Time, begin, end time.Time) (most time.Duration) {
	answers = slices.SortedFunc(slices.Values(answers), time.Time.Compare)
	for i := 1; i < len(answers); i++ {
		if at := answers[i]; !at.Before(begin) && !at.After(end) {
			most = max(most, at.Sub(answers[i-1]))
		}
	}
	return most
}

// asking is a sequence of requests under way.
type asking struct {
	stop    chan struct{}
	all     sync.WaitGroup
	arrived chan struct{} // closed with the first answer of the new home, or the first error
	mu      struct {
		sync.Mutex

		answers []time.Time // and the start
		there   time.Time   // of the first answer of the new home
		lost    int
		err     error
	}
}

// answerTimeout is when a request is lost.
const answerTimeout = 5 * time.Second

// askEveryMillisecond sends an entity, which has just answered, a request every millisecond until
// end, without waiting for earlier answers. to is the new home.
func askEveryMillisecond(e entity, to int64) *asking {
	r := &asking{stop: make(chan struct{}), arrived: make(chan struct{})}
	r.mu.answers = append(r.mu.answers, time.Now())
	r.all.Go(func() {
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-ticks.C:
			}
			r.all.Go(func() {
				from, err := e.ask(answerTimeout)
				r.answered(time.Now(), err == nil && from == to, err)
			})
		}
	})
	return r
}

func (r *asking) answered(at time.Time, there bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (err != nil || there) && r.mu.err == nil && r.mu.there.IsZero() {
		close(r.arrived)
	}
	if err != nil {
		r.mu.err = err
		r.mu.lost++
		return
	}
	r.mu.answers = append(r.mu.answers, at)
	if there && (r.mu.there.IsZero() || at.Before(r.mu.there)) {
		r.mu.there = at
	}
}

// await waits for an answer of the new home.
func (r *asking) await(ctx context.Context) error {
	select {
	case <-r.arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the new home does not answer: %w", context.Cause(ctx))
	}
}

// end waits for all answers.
func (r *asking) end() (answers []time.Time, there time.Time, err error) {
	close(r.stop)
	r.all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.lost > 0 {
		err = fmt.Errorf("%d of %d requests are lost: %w", r.mu.lost,
			r.mu.lost+len(r.mu.answers)-1, r.mu.err)
	}
	return r.mu.answers, r.mu.there, err
}
