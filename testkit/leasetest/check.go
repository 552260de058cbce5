package leasetest

import (
	"errors"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

var checkChecks = []check{
	{"K3_FalseAfterRelease", func(e *env) {
		g := e.node().hold()
		e.must(g.Release(e.Context()))
		e.that(errors.Is(g.Check(), coordination.ErrReleased) && g.Remaining() == 0, "got %v %v",
			g.Check(), g.Remaining())
	}},
	{"K4_CheckNeverBlocksNorAllocates", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{cut: true})
		e.sleep(15 * time.Second)
		for range 100_000 {
			e.must(g.Check())
		}
		e.that(allocs(e, g) == 0, "Check allocates")
		e.sleep(20 * time.Second)
		e.that(allocs(e, g) == 0, "Check allocates when lost")
	}},
	{"K6_ValidityCountsFromTheRequest", func(e *env) {
		n := e.node()
		n.set(fault{delay: op - time.Millisecond})
		g, err := n.acquire(time.Minute)
		e.must(err)
		e.that(g.Remaining() < ttl-2*op/3, "valid for %v after a delay", g.Remaining())
	}},
	{"K7_ContextEndsAtStopBy", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{cut: true})
		<-g.Context().Done()
		lost, ok := errors.AsType[*coordination.LostError](contextCause(g))
		e.that(ok && lost.Why == coordination.Expired, "cause %v", contextCause(g))
		left := g.Remaining()
		e.that(left > ttl/6-time.Second && left <= ttl/6, "drain of %v", left)
		e.sleep(left)
		e.that(g.Remaining() == 0, "still %v", g.Remaining())
	}},
	{"K7_FromContext", func(e *env) {
		g := e.node().hold()
		tenure, ok := coordination.FromContext(g.Context())
		e.that(ok && tenure.Token() == g.Token(), "got %v", tenure)
		_, ok = coordination.FromContext(e.Context())
		e.that(!ok, "found a tenure in a bare context")
	}},
}

// allocs returns how often Check allocates. It cannot be measured where claims are checked side by
// side, and Check calls no store.
func allocs(e *env, g *coordination.Grant) float64 {
	if e.options.Outside {
		return 0
	}
	return testing.AllocsPerRun(100, func() { _ = g.Check() })
}
