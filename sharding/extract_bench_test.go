package sharding

import "testing"

// What a message without an id costs more than one with.
func BenchmarkExtractor(b *testing.B) {
	x := &extractor{extract: func(any) string { return "ann" }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.id("message"); err != nil {
			b.Fatal(err)
		}
	}
}
