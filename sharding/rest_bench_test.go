package sharding

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/sharding/internal/core"
)

// BenchmarkRest measures what a type costs while nothing changes: a region and its coordinator on
// each side of one connection, one second a round.
func BenchmarkRest(b *testing.B) {
	for _, shards := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			p := newPair(b, shards)
			p.second()
			p.second()
			messages, bytes, at := p.messages, p.bytes, p.now
			for b.Loop() {
				p.second()
			}
			seconds := p.now.Sub(at).Seconds()
			b.ReportMetric(float64(p.messages-messages)/seconds, "messages/s")
			b.ReportMetric(float64(p.bytes-bytes)/seconds, "B/s")
			if perSecond := float64(p.bytes-bytes) / seconds; perSecond > 400 {
				b.Errorf("%.0f B/s, at most 400, whatever the number of shards", perSecond)
			}
		})
	}
}

// pair is a coordinator and the region of another member, which has all shards.
type pair struct {
	tb              testing.TB
	now             time.Time
	region          *core.Region
	coordinator     *core.Allocation
	self, host      core.Member
	messages, bytes int
}

func newPair(tb testing.TB, shards int) *pair {
	cfg := Config{Type: "cart", Shards: shards}.withDefaults().core()
	p := &pair{tb: tb, now: time.Unix(1000, 0), region: core.NewRegion(cfg),
		coordinator: core.NewAllocation(cfg, 1, nil),
		self:        core.Member{ID: "m0", Incarnation: 1, Address: "10.0.0.1:8080"},
		host:        core.Member{ID: "m1", Incarnation: 2, Address: "10.0.0.2:8080"}}
	p.toRegion(core.View{Self: p.host, Members: []core.Member{p.self, p.host}})
	p.toCoordinator(core.View{Self: p.self, Members: []core.Member{p.host}})
	return p
}

// second lets a second pass.
func (p *pair) second() {
	for end := p.now.Add(time.Second); p.now.Before(end); {
		p.now = p.coordinator.NextWake()
		p.toCoordinator(core.Wake{})
	}
}

func (p *pair) toCoordinator(ev core.Event) {
	for _, e := range p.coordinator.Step(p.now, ev) {
		if e, ok := e.(core.Tell); ok {
			p.toRegion(core.Received{From: p.self, Message: p.pass(e.Message)})
		}
	}
}

// toRegion carries out the effects; each lease is granted at once.
func (p *pair) toRegion(ev core.Event) {
	for _, e := range append([]core.Effect(nil), p.region.Step(p.now, ev)...) {
		switch e := e.(type) {
		case core.Tell:
			if _, ok := e.Message.(core.Report); ok {
				p.toCoordinator(core.Received{From: p.host, Message: p.pass(e.Message)})
			}
		case core.Acquire:
			p.toRegion(core.Held{Shard: e.Shard, Attempt: e.Attempt, Token: 7})
		}
	}
}

// pass returns a message as the other side decodes it.
func (p *pair) pass(m core.Message) core.Message {
	manifest, message := encode(m)
	payload, err := proto.Marshal(message)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.messages++
	p.bytes += len(payload)
	out, err := decode(manifest, payload)
	if err != nil {
		p.tb.Fatal(err)
	}
	return out
}
