package core_test

import "github.com/concord-go/concord/sharding/internal/core"

// asks records that a message goes to another member. Its sender may wait for an answer.
func (n *node) asks(d core.Data) {
	if d.Delivery == 0 {
		t := core.Tenure{Shard: d.Shard, Token: d.Token}
		if _, asked := n.asked[t]; !asked {
			n.asked[t] = false
		}
	}
}

// fails ends the calls of this node under a tenure at once [S13b].
func (n *node) fails(e core.Orphaned) {
	if n.w.opt.planned {
		n.w.Fail("planned: %v fails its calls to shard %d under %d", n.me(), e.Shard, e.Token)
	}
	if _, asked := n.asked[e.Tenure]; asked {
		n.asked[e.Tenure] = true
		n.w.stat.failed++
	}
}

// concluded checks that no member that the coordinator at c sees waits for the answer of a host
// that is gone: its tenure is over, and it did not give it up in order.
func (w *world) concluded(c *node) {
	for _, m := range c.seen.Members {
		n := w.node(m)
		if w.IsCut(c.i, n.i) || w.IsCut(n.i, c.i) {
			continue
		}
		for t, failed := range n.asked {
			if !failed && !w.inOrder[t] && w.store.lease(t.Shard).token != t.Token {
				w.Fail("%v still waits for answers of shard %d under %d", m, t.Shard, t.Token)
			}
		}
	}
}
