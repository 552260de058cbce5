package testkit

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// ExpectDeadLetter runs during and expects that it directly or indirectly sends an M that becomes a
// dead letter of system. It returns the first such message. Messages to another member never become
// dead letters: the network loses them silently.
func ExpectDeadLetter[M any](t testing.TB, system *actor.ActorSystem, during func()) M {
	t.Helper()
	p := NewProbe(t, system)
	letters := system.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok && !d.PID.Equal(p.pid) {
			p.keep(d.Message, d.Sender)
		}
	})
	defer system.EventStream.Unsubscribe(letters)
	during()
	until := p.until()
	for {
		s, ok := p.take(until)
		if m, is := s.message.(M); ok && is {
			return m
		}
		if !ok {
			p.failf("expected a dead letter %s within %s, got none (below: all dead letters)",
				typeName[M](), short(p.Timeout))
			var none M
			return none
		}
	}
}
