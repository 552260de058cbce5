package leaseconfig_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
)

func TestSection_Defaults(t *testing.T) {
	for _, c := range []struct {
		in            coordination.Config
		ttl, renew, o time.Duration
	}{
		{coordination.Config{}, 120 * time.Second, 12 * time.Second, 5 * time.Second},
		{coordination.Config{TTL: 40 * time.Second}, 40 * time.Second, 5 * time.Second,
			4 * time.Second},
		{coordination.Config{TTL: 6 * time.Second}, 6 * time.Second, 2 * time.Second,
			600 * time.Millisecond},
		{coordination.Config{TTL: time.Minute, RenewInterval: time.Second,
			OperationTimeout: time.Second}, time.Minute, time.Second, time.Second},
	} {
		got := leaseconfig.DefaultSection(leaseconfig.Section{Config: c.in}).Config
		require.Equal(t, []time.Duration{c.ttl, c.renew, c.o}, []time.Duration{
			got.TTL, got.RenewInterval, got.OperationTimeout})
		require.NoError(t, got.Validate())
	}
}
