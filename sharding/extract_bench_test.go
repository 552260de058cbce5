package sharding

import "testing"

// BenchmarkExtractor measures the extra cost of a message without an id.
func BenchmarkExtractor(b *testing.B) {
	x := &extractor{extract: func(any) string { return "ann" }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.id("message"); err != nil {
			b.Fatal(err)
		}
	}
}
