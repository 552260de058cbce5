package sharding

import (
	"strconv"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/sharding/internal/core"
)

// A keeper stops after its entities, so no message between them becomes a dead letter.
func TestKeeper_StopsAfterItsEntities(t *testing.T) {
	var handled sync.WaitGroup
	p := openPlace(t, func(Entity) actor.Actor { return &replier{&handled} })
	var dead sync.Map
	p.life.system.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			dead.Store(d, true)
		}
	})
	const entities = 100
	handled.Add(entities)
	for i := range entities {
		if !p.tell(core.Body{ID: strconv.Itoa(i), Value: i}) {
			t.Fatal("the shard is not open")
		}
	}
	handled.Wait()
	p.last(1)
	p.life.actors.Wait()
	for d := range dead.Range {
		t.Errorf("a %T for %v became a dead letter", d.(*actor.DeadLetterEvent).Message,
			d.(*actor.DeadLetterEvent).PID)
	}
}
