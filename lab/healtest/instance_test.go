//go:build linux

package healtest_test

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
)

// bootTime reads a clock that all processes of the machine share and that is never set.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

const aliveInterval = 50 * time.Millisecond

var instances atomic.Int64 // of this process

// instance is an instance of the singleton. It records when it was alive: a line at its start, at
// its stop, and in between whenever it may act.
type instance struct {
	tenure coordination.Tenure
	name   string
	out    *os.File
	timer  *time.Timer
}

type aliveTick struct{}

func (m *member) produce(t coordination.Tenure) actor.Actor {
	return &instance{tenure: t, name: m.Name + "#" + strconv.FormatInt(instances.Add(1), 10),
		out: m.records()}
}

// records opens the file to which all instances append.
func (m *member) records() *os.File {
	f, err := os.OpenFile(m.Instances, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}

// Receive answers a request with token and name, and records.
func (a *instance) Receive(ctx actor.Context) {
	now := bootTime() // taken before the check: if the check succeeds, the tenure was valid then
	valid := a.tenure.Check() == nil
	switch ctx.Message().(type) {
	case *actor.Started:
		a.record(now, "start")
		a.next(ctx)
	case aliveTick:
		if valid {
			a.record(now, "alive")
		}
		a.next(ctx)
	case *wrapperspb.StringValue:
		if !valid {
			ctx.Respond(wrapperspb.String(""))
			return
		}
		ctx.Respond(wrapperspb.String(a.tenure.Token().String() + " " + a.name))
	case *actor.Stopped:
		a.timer.Stop()
		a.record(bootTime(), "stop")
		_ = a.out.Close()
	}
}

func (a *instance) next(ctx actor.Context) {
	system, self := ctx.ActorSystem(), ctx.Self()
	a.timer = time.AfterFunc(aliveInterval, func() { system.Root.Send(self, aliveTick{}) })
}

// record appends a line in one write, so that lines of several processes do not mix.
func (a *instance) record(at time.Duration, what string) {
	line := fmt.Sprintf("%d %s %s %s\n", at, what, a.tenure.Token(), a.name)
	if _, err := a.out.WriteString(line); err != nil {
		panic(err)
	}
}
