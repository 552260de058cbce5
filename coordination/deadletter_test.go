package coordination_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// What this package sends to an actor that has stopped becomes a dead letter. The subscribers of
// the event stream then run on a goroutine of this package, and a panic there would end the
// process.
func TestDeadLetter_ASubscriberMayPanic(t *testing.T) {
	onStage(t, func(s *stage) {
		dead := map[string]int{}
		sub := s.system.EventStream.Subscribe(func(m any) {
			if d, ok := m.(*actor.DeadLetterEvent); ok {
				dead[types([]any{d.Message})]++
				panic("the application's")
			}
		})
		defer s.system.EventStream.Unsubscribe(sub)
		p := s.probe()
		s.system.Root.Stop(p.pid)
		s.sleep(time.Second)

		cancel := s.a.Lease("lease").AcquireTo(s.system, p.pid)
		s.sleep(time.Second)
		cancel()
		s.sleep(time.Second)
		j := &journal{}
		gate := s.gate(j, 1)
		s.expect(j, "[start 2]")
		s.system.Root.Stop(gate)
		s.sleep(10 * time.Second)
		s.that(s.free(), "held for actors that are gone")
		s.that(dead["*coordination.Acquired "] == 1, "%v", dead)
	})
}
