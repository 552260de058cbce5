package sharding

import (
	"strconv"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A keeper stops after its entities, so no message between them becomes a dead letter.
func TestKeeper_StopsAfterItsEntities(t *testing.T) {
	var handled sync.WaitGroup
	p := openPlace(t, func(Entity) actor.Actor { return &replier{&handled} })
	var dead sync.Map
	p.binding.system.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			dead.Store(d, true)
		}
	})
	const entities = 100
	handled.Add(entities)
	for i := range entities {
		if err := p.send(strconv.Itoa(i), wrapperspb.Int64(int64(i)), nil); err != nil {
			t.Fatal("the shard is not open")
		}
	}
	handled.Wait()
	p.last(1)
	p.binding.actors.Wait()
	for d := range dead.Range {
		t.Errorf("a %T for %v became a dead letter", d.(*actor.DeadLetterEvent).Message,
			d.(*actor.DeadLetterEvent).PID)
	}
}

// A keeper that is to stop waits for the entities that are alive.
func TestKeeper_WaitsForItsEntities(t *testing.T) {
	handled := make(chan string, 2)
	p := openPlace(t, func(e Entity) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
				handled <- e.ID
			}
		})
	})
	tell := func(id string) {
		if err := p.send(id, wrapperspb.Int64(1), nil); err != nil {
			t.Fatal("the shard is not open")
		}
	}
	tell("first")
	<-handled
	stopped := make(chan struct{})
	go func() {
		p.binding.actors.Wait()
		close(stopped)
	}()
	p.binding.system.Root.Send(p.keeper, finish{})
	tell("second") // spawned by the keeper, after it has received finish
	select {
	case <-handled:
	case <-stopped:
		t.Fatal("the keeper stopped before its entities")
	}
	p.last(1)
	<-stopped
}
