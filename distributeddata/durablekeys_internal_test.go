package distributeddata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDurableKeys_AKeyIsDurableIfAnEntryNamesItOrItsPrefix(t *testing.T) {
	c, err := newDurableKeys([]string{"cart-*", "stock", "cart-a*", "cart-17", "a*", "stock-eu"})
	require.NoError(t, err)
	for key, want := range map[string]bool{
		"cart-": true, "cart-17": true, "cart": false, "carts": false, "stock": true,
		"stock-": false, "stock-eu": true,
		"a": true, "abc": true, "b": false, "": false, "A": false,
	} {
		require.Equal(t, want, c.durable(key), key)
	}
	all, err := newDurableKeys([]string{"*", "x"})
	require.NoError(t, err)
	require.True(t, all.durable("anything"))
	none, err := newDurableKeys(nil)
	require.NoError(t, err)
	require.False(t, none.durable("anything"))
	require.Zero(t, none.sum())
}

func TestDurableKeys_SaysWhichDomainsAPrefixMeets(t *testing.T) {
	c, err := newDurableKeys([]string{"cart-*", "stock-eu"})
	require.NoError(t, err)
	type both struct{ volatile, durable bool }
	for text, want := range map[string]both{
		"": {true, true}, "c": {true, true}, "cart-": {false, true}, "cart-1": {false, true},
		"carts": {true, false},
		"stock": {true, true}, "stock-eu": {true, true}, "stock-eu2": {true, false},
		"z": {true, false},
	} {
		volatile, durable := c.below(text)
		require.Equal(t, want, both{volatile, durable}, text)
	}
	var none *durableKeys
	volatile, durable := none.below("")
	require.Equal(t, both{true, false}, both{volatile, durable})
}

func TestDurableKeys_ListsThatChooseTheSameKeysAreEqual(t *testing.T) {
	sum := func(list ...string) uint64 {
		c, err := newDurableKeys(list)
		require.NoError(t, err)
		require.NotZero(t, c.sum())
		return c.sum()
	}
	require.Equal(t, sum("a*", "b", "c"), sum("c", "b", "a*", "ab", "ab*"))
	require.NotEqual(t, sum("a*"), sum("a"))
	require.NotEqual(t, sum("a", "b"), sum("ab"))
	require.NotEqual(t, sum("*"), sum("a*"))
}

func TestDurableKeys_RefusesWhatItCannotUse(t *testing.T) {
	for want, list := range map[string][]string{
		`an entry is empty; "*" stands for all keys`:      {"a", ""},
		`"a" is listed twice`:                             {"a", "b", "a"},
		`"a*b" has a star that is not its last character`: {"a*b"},
		`"a**" has a star that is not its last character`: {"a**"},
		"an entry has 513 bytes, over the limit of 512":   {strings.Repeat("x", 513)},
		`"\xff" is not UTF-8`:                             {"\xff"},
	} {
		_, err := newDurableKeys(list)
		require.ErrorIs(t, err, ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, Config{Durable: list}.validate(), ErrInvalid, want)
	}
}
