package sharding

import (
	"strconv"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A supervisor stops after its entities, so no message between them becomes a dead letter.
func TestSupervisor_StopsAfterItsEntities(t *testing.T) {
	var handled sync.WaitGroup
	s := openShard(t, func(Entity) actor.Actor { return &replier{&handled} })
	var dead sync.Map
	s.binding.system.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			dead.Store(d, true)
		}
	})
	const entities = 100
	handled.Add(entities)
	for i := range entities {
		if err := s.send(strconv.Itoa(i), wrapperspb.Int64(int64(i)), nil); err != nil {
			t.Fatal("the shard is not open")
		}
	}
	handled.Wait()
	s.last(1)
	s.binding.actors.Wait()
	for d := range dead.Range {
		t.Errorf("a %T for %v became a dead letter", d.(*actor.DeadLetterEvent).Message,
			d.(*actor.DeadLetterEvent).PID)
	}
}

// A supervisor that is to stop waits for the entities that are alive.
func TestSupervisor_WaitsForItsEntities(t *testing.T) {
	handled := make(chan string, 2)
	s := openShard(t, func(e Entity) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
				handled <- e.ID
			}
		})
	})
	tell := func(id string) {
		if err := s.send(id, wrapperspb.Int64(1), nil); err != nil {
			t.Fatal("the shard is not open")
		}
	}
	tell("first")
	<-handled
	stopped := make(chan struct{})
	go func() {
		s.binding.actors.Wait()
		close(stopped)
	}()
	s.binding.system.Root.Send(s.supervisor, finish{})
	tell("second") // spawned by the supervisor, after it has received finish
	select {
	case <-handled:
	case <-stopped:
		t.Fatal("the supervisor stopped before its entities")
	}
	s.last(1)
	<-stopped
}
