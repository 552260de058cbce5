package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/concord-go/concord/distributeddata/store"
)

func TestBatch_ValidateNamesTheBound(t *testing.T) {
	for want, fill := range map[string]func(b *store.Batch){
		"row 1 has no key": func(b *store.Batch) { b.Put("", nil) },
		"row 1 has a key of 1025 bytes, at most 1024": func(b *store.Batch) {
			b.Delete(strings.Repeat("k", 1025))
		},
		"value of 1000001 bytes, at most 1000000": func(b *store.Batch) {
			b.Put("v", make([]byte, 1_000_001))
		},
		"4000005 bytes, at most 4000000": func(b *store.Batch) {
			for i := range 4 {
				b.Put(fmt.Sprint(i), make([]byte, 1_000_000))
			}
		},
		"10001 rows, at most 10000": func(b *store.Batch) {
			for range 10_000 {
				b.Delete("d")
			}
		},
	} {
		b := &store.Batch{}
		b.Put("a", nil)
		fill(b)
		if err := b.Validate(); !errors.Is(err, store.ErrInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func ExampleBatch() {
	var b store.Batch
	b.Put("cart-17", []byte("milk"))
	b.Delete("cart-16")
	for _, o := range slices.Collect(b.Ops()) {
		fmt.Printf("%s %q %v\n", o.Key, o.Value, o.Delete)
	}
	fmt.Println(b.Len(), b.Size(), b.Validate())
	// Output:
	// cart-17 "milk" false
	// cart-16 "" true
	// 2 18 <nil>
}
