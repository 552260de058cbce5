package sharding

import (
	"log/slog"
	"testing"
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
)

// BenchmarkSettled measures the cost of each protocol message on a member with 3,000 shards,
// without the message itself: only the status of the shard that it was for is published.
func BenchmarkSettled(b *testing.B) {
	l := &binding{cfg: Config{Type: "cart", Shards: 3000}.withDefaults(),
		log: slog.New(slog.DiscardHandler)}
	c := &control{binding: l, log: l.log, region: core.NewRegion(l.cfg.core())}
	for n := range l.cfg.Shards {
		l.shards = append(l.shards, &hostedShard{binding: l, n: n})
	}
	now := time.Unix(1000, 0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = (n + 1) % 3000
		c.region.Step(now, core.Lost{Shard: n, Token: 1}) // the tenure has ended: nothing to do
		c.stir = true
		c.settled(nil)
	}
}
