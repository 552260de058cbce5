package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/concord-go/concord/internal/causal"
)

// BenchmarkLoader builds an image from 100,000 rows of 1 kB.
func BenchmarkLoader(b *testing.B) {
	const rows = 100_000
	var keys [rows]string
	payload := strings.Repeat("x", 1000)
	var value []byte
	for i := range keys {
		l := causal.Leaf{Dot: causal.Dot{Replica: 7, N: 1}, Payload: payload}
		o := leafOps(nil, rowPrefix(0, fmt.Sprintf("key-%06d", i)), "path", l, false)[0]
		keys[i], value = o.Key, o.Value
	}
	b.ReportAllocs()
	for range b.N {
		l := NewLoader("x")
		_ = l.Add(rowHeader, header{owner: "x", format: rowFormat}.encode())
		for _, key := range keys {
			_ = l.Add(key, value)
		}
		if l.Image(); len(l.live.keys) != rows {
			b.Fatal(len(l.live.keys))
		}
	}
}
