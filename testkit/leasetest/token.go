package leasetest

import (
	"errors"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
)

var tokenChecks = []check{
	{"F1_LargerAfterEveryEnd", func(e *env) {
		a := e.node()
		g := a.hold()
		e.must(g.Release(e.Context())) // release
		a.hold()
		a.set(fault{down: true})
		e.sleep(2 * ttl) // expiry
		a.set(fault{})
		g, err := a.acquire(time.Minute)
		e.must(err)
		e.must(e.node().Lease(name).ForceRelease(e.Context(), g.Token())) // operator
		b := e.node()
		e.sleep(e.learns())
		e.that(g.Check() != nil, "unaware of the forced release")
		b.hold()
		b.crash() // crash, restart
		_, err = e.node().acquire(time.Hour)
		e.must(err)
	}},
	{"D20_ForceReleaseNeedsTheToken", func(e *env) {
		g := e.node().hold()
		l := e.node().Lease(name)
		err := l.ForceRelease(e.Context(), g.Token()+1)
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		e.must(g.Check())
		e.must(l.ForceRelease(e.Context(), g.Token()))
		e.must(l.ForceRelease(e.Context(), g.Token()))
		e.sleep(e.learns())
		lost, ok := errors.AsType[*coordination.LostError](g.Check())
		e.that(ok && lost.Why == coordination.TakenOver, "got %v", g.Check())
	}},
	{"Holder_TellsPeople", func(e *env) {
		l := e.node().Lease(name)
		h, err := l.Holder(e.Context())
		e.that(h.Owner == "" && h.Remaining == 0 && e.nth(h.Token, 0) && err == nil, "got %+v %v",
			h, err)
		g := e.node().hold()
		h, err = l.Holder(e.Context())
		e.that(h.Owner == "node1" && h.Token == g.Token() && h.Remaining > 0 && err == nil,
			"got %+v %v", h, err)
		e.must(g.Release(e.Context()))
		h, err = l.Holder(e.Context())
		e.that(h.Owner == "" && h.Remaining == 0 &&
			(h.Token == g.Token() || e.options.TokensJump && h.Token > g.Token()) && err == nil,
			"got %+v %v", h, err)
	}},
	{"F3_F4_FencedStoreRefusesTheOld", func(e *env) {
		fence := &fenced{}
		a := e.node()
		old := a.hold()
		e.must(fence.write(old.Token()))
		a.set(fault{cut: true})
		next, err := e.node().acquire(time.Hour)
		e.must(err)
		e.must(fence.write(next.Token()))
		e.that(fence.write(old.Token()) != nil, "the paused holder got through")
		e.must(fence.write(next.Token()))
	}},
	{"F5_K8_RandomHistory", func(e *env) {
		nodes := []*node{e.node(), e.node(), e.node()}
		for i := range 60 {
			n := nodes[i%3]
			if g, err := n.acquire(time.Duration(i%7+1) * 9 * time.Second); err == nil {
				switch i % 4 {
				case 0:
					n.set(fault{down: true}, 6)
				case 1:
					n.set(fault{loseAnswer: true}, 2)
					e.sleep(ttl / 2)
					_ = g.Release(e.Context())
				default:
					_ = g.Release(e.Context())
				}
			}
		}
	}},
}

// fenced is a target that keeps the highest token and rejects lower ones, unless it is open.
type fenced struct {
	open bool

	mu    sync.Mutex
	high  coordination.Token
	value string
}

func (f *fenced) write(t coordination.Token) error { return f.put(t, "") }

func (f *fenced) put(t coordination.Token, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t < f.high && !f.open {
		return errors.New("stale token")
	}
	f.high, f.value = t, value
	return nil
}

func (f *fenced) get() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value
}
