//go:build linux

package healtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

const (
	// entities is how many entities each member asks, in half as many shards.
	entities = 32
	// roundEvery is the pause between two rounds of questions, and roundTimeout how long a member
	// waits for an answer.
	roundEvery   = 250 * time.Millisecond
	roundTimeout = time.Second
)

// questions is the result of one round: a member asks every entity and the clerk at the same time.
type questions struct {
	At       time.Duration // when the round began
	Took     time.Duration // until the last answer, or the end of the wait for it
	Missing  int           // questions that had no answer
	Why      string        `json:",omitempty"` // of one of them
	By       []string      // the members that answered
	Clerk    string        // the member that answered for the clerk
	Members  int           // in the view
	NotReady string        `json:",omitempty"` // what /readyz says, if it is not ok
}

// outages is a member with the defaults of every setting: it hosts a singleton and entities, and
// asks all of them all the time.
type outages struct {
	*member
	region *sharding.Region[*wrapperspb.StringValue]
	clerk  *singleton.Singleton
	made   chan struct{}
	once   sync.Once
}

func (m *member) runOutages() int {
	o := &outages{member: m, made: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() { o.askAll(ctx) })
	err := node.Run(ctx, node.RunConfig{
		Cluster:    "outage",
		Remote:     node.Config{Host: m.Host, Port: memberPort, PlaintextUnsafe: true},
		Provider:   m.defaultProvider,
		Store:      m.store,
		MinMembers: len(m.Hosts)/2 + 1,
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Health:     &m.health,
	}, o.registerOutages)
	stop()
	asking.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, "member ended:", err)
	}
	return node.ExitCode(err)
}

func (o *outages) registerOutages(n *node.Node) error {
	o.system.Store(n)
	dd, err := distributeddata.New(n.System, distributeddata.Config{
		MinMembers: len(o.Hosts)/2 + 1})
	if err != nil {
		return err
	}
	region, err := sharding.New[*wrapperspb.StringValue](n.System, n.Session, dd,
		sharding.Config{Type: "thing", Shards: entities / 2},
		func(sharding.Entity) actor.Actor { return answerer{o.Name} })
	if err != nil {
		return err
	}
	clerk, err := singleton.New(n.System, n.Session, singleton.Config{Name: "clerk"},
		func(coordination.Tenure) actor.Actor { return answerer{o.Name} })
	if err != nil {
		return err
	}
	o.once.Do(func() { o.region, o.clerk = region, clerk; close(o.made) })
	return nil
}

// answerer answers with the name of its member.
type answerer struct{ name string }

func (a answerer) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		ctx.Respond(wrapperspb.String(a.name))
	}
}

func (o *outages) askAll(ctx context.Context) {
	var rounds sync.WaitGroup
	defer rounds.Wait()
	tick := time.NewTicker(o.Rounds)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			rounds.Go(func() { o.say(report{Round: o.askOnce()}) })
		}
	}
}

func (o *outages) askOnce() *questions {
	r := &questions{At: bootTime()}
	select {
	case <-o.made:
	default:
		r.Missing, r.Why = entities+1, "not started"
		return r
	}
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	var mu sync.Mutex
	by := map[string]bool{}
	var all sync.WaitGroup
	note := func(name *wrapperspb.StringValue, err error, clerk bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			r.Missing, r.Why = r.Missing+1, fmt.Sprint(err)
		default:
			by[name.Value] = true
			if clerk {
				r.Clerk = name.Value
			}
		}
	}
	for _, id := range entityIDs() {
		all.Go(func() {
			name, err := sharding.As[*wrapperspb.StringValue](o.region.Ref(id).Ask(ctx,
				wrapperspb.String("?")))
			note(name, err, false)
		})
	}
	all.Go(func() {
		name, err := singleton.As[*wrapperspb.StringValue](o.clerk.Ask(ctx, wrapperspb.String("?")))
		note(name, err, true)
	})
	all.Wait()
	r.Took = bootTime() - r.At
	for name := range by {
		r.By = append(r.By, name)
	}
	o.look(r)
	return r
}

// look adds what the member says about itself.
func (o *outages) look(r *questions) {
	if n := o.system.Load(); n != nil {
		if members, ok := membership.Lookup(n.System); ok && members.View() != nil {
			r.Members = len(members.View().Members)
		}
	}
	w := httptest.NewRecorder()
	o.health.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	if w.Code != 200 {
		r.NotReady = strings.ReplaceAll(strings.TrimSpace(w.Body.String()), "\n", "; ")
	}
}

var entityIDs = sync.OnceValue(func() (ids []string) {
	for i := range entities {
		ids = append(ids, fmt.Sprintf("thing-%d", i))
	}
	return ids
})
