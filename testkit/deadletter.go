package testkit

import (
	"strings"
	"sync"
	"testing"
	"time"

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

// ExpectNoDeadLetter runs during and expects that it sends no message that becomes a dead letter of
// system, then or shortly afterwards.
func ExpectNoDeadLetter(t testing.TB, system *actor.ActorSystem, during func()) {
	t.Helper()
	var mu sync.Mutex
	var found []string
	letters := system.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok && !internal(d.Message) {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, describe(d.Message)+" to "+name(d.PID)+" from "+name(d.Sender))
		}
	})
	during()
	time.Sleep(lull)
	system.EventStream.Unsubscribe(letters)
	mu.Lock()
	defer mu.Unlock()
	if len(found) > 0 {
		t.Fatalf("expected no dead letter, got:\n  %s",
			strings.Join(found[:min(len(found), most)], "\n  "))
	}
}

// internal reports whether a message is one of Proto.Actor's own, such as a Watch.
func internal(m any) bool {
	_, is := m.(actor.SystemMessage)
	return is
}
