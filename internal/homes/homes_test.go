package homes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-go/concord/internal/homes"
)

func TestRebuilt(t *testing.T) {
	for _, typ := range []string{"cart", "a/b", "x/shard-", ""} {
		assert.True(t, homes.Rebuilt(homes.Settings(typ)), typ)
		assert.True(t, homes.Rebuilt(homes.Table(typ)+"7"), typ)
	}
	for _, key := range []string{"", "settings", "cart/shard-1", "concord-sharding-cart",
		"concord-sharding-cart/external", "concord-sharding-cart/entities-1",
		"concord-sharding-settings", "my-concord-sharding-cart/settings"} {
		assert.False(t, homes.Rebuilt(key), key)
	}
}
