package distributeddata

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// FuzzDurableKeys compares the keys that a list chooses with a linear search of the list, and with
// those of the reversed list.
func FuzzDurableKeys(f *testing.F) {
	f.Add("cart-*,cart-1,a", "cart-1")
	f.Add("*,a*", "")
	f.Add("a**", "a*")
	f.Add("a,a", "a")
	f.Add("ab*,a*,b,\xff", "abc")
	f.Fuzz(func(t *testing.T, text, key string) {
		list := strings.Split(text, ",")
		c, err := newDurableKeys(list)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		want := slices.ContainsFunc(list, func(entry string) bool {
			prefix, star := strings.CutSuffix(entry, "*")
			return entry == key || star && strings.HasPrefix(key, prefix)
		})
		if got := c.durable(key); got != want {
			t.Errorf("%q chooses %q: %v, want %v", list, key, got, want)
		}
		volatile, durable := c.below(key)
		if want && !durable || !want && !volatile {
			t.Errorf("below %q of %q: volatile %v, durable %v, and that key is durable: %v", key,
				list, volatile, durable, want)
		}
		slices.Reverse(list)
		if turned, err := newDurableKeys(list); err != nil || turned.sum() != c.sum() {
			t.Errorf("%q turned around: %v, or another digest", list, err)
		}
	})
}
