// Package watchdog is a small example actor. Read its test, which shows the use of package testkit.
package watchdog

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Lost reports to the owner how long the partner has been silent.
type Lost struct{ After time.Duration }

// Found reports to the owner that the partner has been heard again.
type Found struct{}

const (
	every   = time.Second
	silence = 5 * time.Second
)

// Watchdog greets a partner every second, and notifies its owner when the partner's greetings stop.
type Watchdog struct {
	Partner, Owner *actor.PID

	heard time.Time
	lost  bool
	timer *time.Timer
}

type tick struct{}

// Receive implements actor.Actor.
func (w *Watchdog) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		w.heard = time.Now()
		w.greet(ctx)
	case tick:
		if quiet := time.Since(w.heard); quiet > silence && !w.lost {
			w.lost = true
			ctx.Send(w.Owner, &Lost{quiet})
		}
		w.greet(ctx)
	case *emptypb.Empty:
		w.heard = time.Now()
		if w.lost {
			w.lost = false
			ctx.Send(w.Owner, &Found{})
		}
	case *actor.Stopping:
		w.timer.Stop()
	}
}

func (w *Watchdog) greet(ctx actor.Context) {
	ctx.Send(w.Partner, &emptypb.Empty{})
	system, self := ctx.ActorSystem(), ctx.Self()
	w.timer = time.AfterFunc(every, func() { system.Root.Send(self, tick{}) })
}
