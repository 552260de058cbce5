package singleton

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/early"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// binding is the part of a Singleton that belongs to one actor system. Nothing refers to it after
// it has ended.
type binding struct {
	system  *actor.ActorSystem
	cfg     Config
	session *coordination.Session // nil: only a proxy
	produce func(coordination.Tenure) actor.Actor
	members *membership.Service
	counts  *counters  // of the Singleton
	place   *locations // of the Singleton
	load    load

	making           contain.Blocking
	refused, ignored bugs.Doubling // lines of the log about messages

	unobserve func() error // unregisters the metrics

	pid     atomic.Pointer[actor.PID] // of the proxy, for users
	proxy   *actor.PID
	started sync.Once
	manager *actor.PID // set by started; nil for a proxy
	calls   ask.Calls[uint64]

	news     *news
	departed bool                   // only the actor of news uses it
	differs  atomic.Pointer[teller] // a member with other settings; nil: none

	unhook  func()         // unregisters the OnStop hook
	running chan struct{}  // closed when the actors run
	actors  sync.WaitGroup // actors that have not stopped

	closing atomic.Bool   // close has begun
	closed  chan struct{} // closed when close has finished
	err     error         // of close, or why the actors did not start; set before closed is closed
	ended   func(error)   // called before closed is closed
}

// guardian restarts the actors forever.
func (l *binding) guardian() actor.PropsOption {
	return bugs.Guardian(l.component(), &l.counts.panics)
}

// component returns the name of the singleton for reports of bugs.
func (l *binding) component() string { return "singleton " + l.cfg.Name }

// begin spawns the proxy, which keeps messages until the member is up, and registers with the
// member.
func (l *binding) begin(key string) error {
	unhook, err := lifecycle.OnStop(l.system, lifecycle.Singleton, key, l.close)
	if err != nil {
		return fmt.Errorf("singleton %q: %w", l.cfg.Name, err)
	}
	p := newProxy(l)
	props := actor.PropsFromProducer(func() actor.Actor { return p }, early.Mailbox(), l.guardian())
	pid, err := l.system.Root.SpawnNamed(props, l.cfg.proxyName())
	if err != nil {
		unhook()
		if errors.Is(err, actor.ErrNameExists) {
			err = fmt.Errorf("%w: the member has a singleton of this name already", ErrInvalid)
		}
		return fmt.Errorf("singleton %q: %w", l.cfg.Name, err)
	}
	l.actors.Add(1)
	l.unhook, l.proxy = unhook, pid
	l.pid.Store(pid)
	l.news = newsOf(l.system, l.members)
	lifecycle.OnStart(l.system, key, l.ready)
	lifecycle.OnCheck(l.system, key, l.check)
	lifecycle.OnHosted(l.system, l.hosted)
	return nil
}

// up starts the manager once the member has an address, and then the proxy.
func (l *binding) up(self membership.Member) {
	if l.proxy.Address != self.Address { // the PID has had no address so far
		l.pid.Store(actor.NewPID(self.Address, l.cfg.proxyName()))
	}
	if l.session != nil {
		m := newManager(l)
		props := actor.PropsFromProducer(func() actor.Actor {
			return m
		}, early.Mailbox(), l.guardian())
		pid, err := l.system.Root.SpawnNamed(props, l.cfg.managerName())
		if err != nil {
			l.fail(err)
			return
		}
		l.actors.Add(1)
		l.manager = pid
	}
	contain.Send(l.system, l.proxy, &begun{})
	close(l.running)
}

func (l *binding) fail(err error) {
	l.system.Logger().Error("singleton not started", slog.String("singleton", l.cfg.Name),
		slog.Any("error", err))
	if l.closing.CompareAndSwap(false, true) {
		l.unhook()
		l.system.Root.Stop(l.proxy)
		l.over(fmt.Errorf("singleton %q: %w", l.cfg.Name, err))
	}
}

// over ends the incarnation: it fails the pending calls and closes closed.
func (l *binding) over(err error) {
	l.err = err
	l.calls.Close(ErrClosed)
	_ = l.unobserve() // the provider may be gone by now
	l.ended(err)
	l.news.tell(&depart{l})
	close(l.closed)
}

// ready waits until the actors run.
func (l *binding) ready(ctx context.Context) error {
	select {
	case <-l.running:
		return nil
	case <-l.closed:
		return errors.Join(ErrClosed, l.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
