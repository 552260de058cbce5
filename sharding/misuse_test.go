package sharding_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

func TestMisuse_ARegionThatNobodyMadeIsInvalid(t *testing.T) {
	ctx := t.Context()
	var r sharding.Region[string]
	var none *sharding.Region[string]
	for call, f := range map[string]func() error{
		"Tell":         func() error { return r.Ref("a").Tell("hello") },
		"Ask":          func() error { _, err := r.Ref("a").Ask(ctx, "hello"); return err },
		"Deliver":      func() error { return r.Ref("a").Deliver(ctx, "hello") },
		"RefFor":       func() error { _, err := r.RefFor("hello"); return err },
		"Allocate":     func() error { return r.Allocate(ctx, nil) },
		"Allocations":  func() error { _, err := r.Allocations(ctx); return err },
		"ClusterStats": func() error { _, err := r.ClusterStats(ctx); return err },
		"Close":        func() error { return r.Close(ctx) },
		"nil Region":   func() error { return none.Ref("a").Tell("hello") },
		"nil RefFor": func() error {
			_, err := none.RefFor("hello")
			return err
		},
		"zero Ref": func() error { return sharding.Ref[string]{}.Tell("hello") },
	} {
		require.ErrorIs(t, f(), sharding.ErrInvalid, call)
	}
	require.Zero(t, sharding.Ref[string]{}.Shard())
	require.Equal(t, "no region/", sharding.Ref[string]{}.String())
}
