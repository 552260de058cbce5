package lookuptest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// book records which activation of each grain handles messages.
type book struct {
	mu     sync.Mutex
	grains map[string]*page
	last   int // activation
}

// page is a grain.
type page struct {
	now     int          // the activation that has handled the last message
	former  map[int]bool // those before
	doubles int          // messages handled by a former one
}

func (b *book) begin() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	return b.last
}

func (b *book) handled(grain string, activation int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.grains[grain]
	if p == nil {
		p = &page{now: activation, former: map[int]bool{}}
		b.grains[grain] = p
	}
	if p.former[activation] {
		p.doubles++
	}
	if p.now != activation {
		p.former[p.now] = true
		p.now = activation
	}
}

// doubles returns the number of messages that a former activation has handled.
func (b *book) doubles() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.grains {
		n += p.doubles
	}
	return n
}

// grain is the virtual actor of the suite. It answers with its name and the number of its
// activation.
type grain struct {
	cfg        Config
	book       *book
	name       string
	activation int
}

// Receive implements actor.Actor.
func (g *grain) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		g.name, g.activation = m.Identity.AsKey(), g.book.begin()
	case *wrapperspb.StringValue:
		if err := g.cfg.Check(ctx); err != nil {
			ctx.Respond(wrapperspb.Bool(false))
			return
		}
		g.book.handled(g.name, g.activation)
		ctx.Respond(wrapperspb.String(g.at(ctx)))
		if m.Value == "stop" {
			ctx.Stop(ctx.Self())
		}
	}
}

func (g *grain) at(ctx actor.Context) string {
	return fmt.Sprintf("%s, activation %d at %s", g.name, g.activation, ctx.Self().Address)
}

var (
	errRefused = errors.New("the activation has refused the message")
	errStrange = errors.New("the answer is of another type")
)

// ask calls a grain once, without more tries than Proto.Actor makes.
func ask(c *cluster.Cluster, kind, identity, text string) (string, error) {
	res, err := c.Request(identity, kind, wrapperspb.String(text))
	switch r := res.(type) {
	case *wrapperspb.StringValue:
		return r.Value, nil
	case *wrapperspb.BoolValue:
		return "", errRefused
	case nil:
		if err == nil {
			err = errStrange
		}
		return "", err
	}
	return "", errStrange
}

// within calls a grain until it answers, or until the time is over.
func within(d time.Duration, c *cluster.Cluster, kind, identity string) (answer string, err error) {
	for end := time.Now().Add(d); ; time.Sleep(100 * time.Millisecond) {
		if answer, err = ask(c, kind, identity, "who?"); err == nil || time.Now().After(end) {
			return answer, err
		}
	}
}
