package testkit

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/timer"
)

// Isolated is one actor run alone. Its actions on other actors are recorded as effects and reach no
// actor. It is a real actor of a real system, so its context behaves as in production.
//
//	order := testkit.Isolate(t, props)
//	order.Request(&Place{Item: "milk"})
//	testkit.ExpectEffect[*testkit.Spawned](order)
//	reply := testkit.ExpectEffect[*testkit.Sent](order).Message
//
// Futures of the actor time out; answer with Send or Request instead.
type Isolated struct {
	t      testing.TB
	system *actor.ActorSystem
	pid    *actor.PID
	start  time.Time

	mu struct {
		sync.Mutex
		effects []Effect
		taken   int // of effects
		handled int
		sent    *actor.MessageEnvelope // the message that SendFrom waits for; nil once handled
		changed chan struct{}
	}
}

// elsewhere is the address of actors that exist only by name.
const elsewhere = "elsewhere:1"

// Isolate starts an isolated actor with the given props, and returns when it has handled Started.
func Isolate(t testing.TB, props *actor.Props) *Isolated {
	t.Helper()
	i := &Isolated{t: t, system: NewSystem(t), start: time.Now()}
	i.mu.changed = make(chan struct{})
	bookOf(i.system).mu.watch = func(l line) { i.note(&Logged{l.level, l.message, l.attrs}) }
	i.system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) {
		return stranger{i}, true
	})
	timer.Attach(i.system, timer.Host{
		Armed:    func(_ *actor.PID, d time.Duration, tag any) { i.note(&Armed{d, tag}) },
		Disarmed: func(_ *actor.PID, tag any) { i.note(&Disarmed{tag}) },
	})
	outside := i.system.Root.Copy()
	i.system.Root.WithSenderMiddleware(i.onSend).WithSpawnMiddleware(i.onSpawn)
	pid, err := outside.SpawnNamed(props.Clone(actor.WithReceiverMiddleware(i.onReceive),
		actor.WithSenderMiddleware(i.onSend), actor.WithSpawnMiddleware(i.onSpawn)), "isolated")
	if err != nil {
		t.Fatalf("isolated actor not spawned: %v", err)
		return nil
	}
	i.pid = pid
	t.Cleanup(func() { outside.Stop(pid) })
	i.await(func() bool { return i.mu.handled > 0 }, "Started")
	return i
}

// PID returns the PID of the actor.
func (i *Isolated) PID() *actor.PID { return i.pid }

// Ref returns a PID with the given name, to be passed to the actor. No actor runs there.
func (i *Isolated) Ref(name string) *actor.PID { return actor.NewPID(elsewhere, name) }

// Send sends a message without a sender to the actor, and returns when the actor has handled it.
func (i *Isolated) Send(msg any) {
	i.t.Helper()
	i.SendFrom(nil, msg)
}

// Request sends a message from Ref("test") to the actor, and returns when the actor has handled it.
func (i *Isolated) Request(msg any) {
	i.t.Helper()
	i.SendFrom(i.Ref("test"), msg)
}

// SendFrom sends a message with the given sender to the actor, and returns when the actor has
// handled it.
func (i *Isolated) SendFrom(sender *actor.PID, msg any) {
	i.t.Helper()
	p, ok := i.system.ProcessRegistry.GetLocal(i.pid.Id)
	if !ok {
		i.failf("sent " + describe(msg) + " to the isolated actor, which has stopped")
		return
	}
	e := &actor.MessageEnvelope{Message: msg, Sender: sender}
	i.mu.Lock()
	i.mu.sent = e
	i.mu.Unlock()
	p.SendUserMessage(i.pid, e)
	i.await(func() bool { return i.mu.sent == nil }, describe(msg))
}

// Terminate notifies the actor that an actor it watches has stopped.
func (i *Isolated) Terminate(who *actor.PID) {
	i.t.Helper()
	i.mu.Lock()
	n := i.mu.handled + 1
	i.mu.Unlock()
	if p, ok := i.system.ProcessRegistry.GetLocal(i.pid.Id); ok {
		p.SendSystemMessage(i.pid, &actor.Terminated{Who: who})
		i.await(func() bool { return i.mu.handled >= n }, "Terminated")
	}
}

// Effects returns the effects since the last call, in order.
func (i *Isolated) Effects() []Effect {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := i.mu.effects[i.mu.taken:]
	i.mu.taken = len(i.mu.effects)
	return out
}

// ExpectEffect takes effects up to the first E and returns it. It waits for one, since timers and
// goroutines take time.
func ExpectEffect[E Effect](i *Isolated) E {
	i.t.Helper()
	var found E
	ok := i.until(func() bool {
		for k, e := range i.mu.effects[i.mu.taken:] {
			if e, is := e.(E); is {
				i.mu.taken += k + 1
				found = e
				return true
			}
		}
		return false
	})
	if !ok {
		i.failf("expected the effect " + typeName[E]() + ", there is none")
	}
	return found
}

// ExpectNoEffect expects that there are no effects since the last one taken.
func (i *Isolated) ExpectNoEffect() {
	i.t.Helper()
	if left := i.Effects(); len(left) > 0 {
		i.failf("expected no effect, got: " + left[0].effect())
	}
}

// onSend records a message and delivers it only if it is addressed to the actor itself.
func (i *Isolated) onSend(next actor.SenderFunc) actor.SenderFunc {
	return func(ctx actor.SenderContext, to *actor.PID, e *actor.MessageEnvelope) {
		if f, ok := e.Message.(*timer.Fired); ok {
			i.note(&Fired{time.Since(i.start), f.Tag})
		} else {
			i.note(&Sent{to, e.Message, e.Sender})
		}
		if to.Equal(i.pid) {
			next(ctx, to, e)
		}
	}
}

// onSpawn replaces a spawned actor by one that does nothing.
func (i *Isolated) onSpawn(next actor.SpawnFunc) actor.SpawnFunc {
	return func(system *actor.ActorSystem, id string, props *actor.Props,
		parent actor.SpawnerContext) (*actor.PID, error) {
		double := actor.PropsFromFunc(func(actor.Context) {},
			actor.WithMailbox(
				actor.Unbounded(&door{i: i, pid: actor.NewPID(system.Address(), id)})))
		pid, err := next(system, id, double, parent)
		if err == nil {
			i.note(&Spawned{pid, props})
		}
		return pid, err
	}
}

func (i *Isolated) onReceive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
		defer func() {
			r := recover()
			if r != nil {
				i.note(&Panicked{r})
			}
			if _, ok := e.Message.(*actor.Stopped); ok {
				i.note(&Stopped{})
			}
			i.mu.Lock()
			i.mu.handled++
			if e == i.mu.sent {
				i.mu.sent = nil
			}
			i.wakeLocked()
			i.mu.Unlock()
			if r != nil {
				panic(r)
			}
		}()
		next(ctx, e)
	}
}

// onSystem records system messages that the actor sends to another one.
func (i *Isolated) onSystem(to *actor.PID, m any) {
	switch m := m.(type) {
	case *actor.Watch:
		if m.Watcher.Equal(i.pid) {
			i.note(&Watched{to})
		}
	case *actor.Unwatch:
		if m.Watcher.Equal(i.pid) {
			i.note(&Unwatched{to})
		}
	case *actor.Stop:
		i.note(&StopRequested{to})
	}
}

func (i *Isolated) note(e Effect) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.effects = append(i.mu.effects, e)
	i.wakeLocked()
}

func (i *Isolated) wakeLocked() {
	close(i.mu.changed)
	i.mu.changed = make(chan struct{})
}

func (i *Isolated) await(handled func() bool, what string) {
	i.t.Helper()
	if !i.until(handled) {
		i.failf("the actor has not finished with " + what + " within " + short(patience))
	}
}

// until waits until the condition, which is called with the lock held, is true.
func (i *Isolated) until(condition func() bool) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	for over := false; ; {
		i.mu.Lock()
		ok, changed := condition(), i.mu.changed
		i.mu.Unlock()
		if ok || over {
			return ok
		}
		select {
		case <-changed:
		case <-t.C:
			over = true
		}
	}
}

func (i *Isolated) failf(problem string) {
	i.t.Helper()
	i.mu.Lock()
	var b strings.Builder
	b.WriteString("It has done, in order:")
	for k, e := range i.mu.effects {
		mark := "taken  "
		if k >= i.mu.taken {
			mark = "waiting"
		}
		b.WriteString("\n  " + mark + "  " + e.effect())
	}
	if len(i.mu.effects) == 0 {
		b.Reset()
		b.WriteString("It has done nothing.")
	}
	i.mu.Unlock()
	i.t.Fatalf("%s\n%s", problem, b.String())
}

// stranger is the process that PIDs of other addresses resolve to.
type stranger struct{ i *Isolated }

func (stranger) SendUserMessage(*actor.PID, any)           {}
func (s stranger) SendSystemMessage(pid *actor.PID, m any) { s.i.onSystem(pid, m) }
func (s stranger) Stop(pid *actor.PID)                     { s.i.note(&StopRequested{pid}) }

// door observes the mailbox of an actor that does nothing.
type door struct {
	i   *Isolated
	pid *actor.PID
}

func (d *door) MessagePosted(m any) { d.i.onSystem(d.pid, m) }
func (*door) MailboxStarted()       {}
func (*door) MessageReceived(any)   {}
func (*door) MailboxEmpty()         {}
