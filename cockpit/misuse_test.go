package cockpit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// A component that is nil, as Node.Session is without a lease store, ended the process when a page
// was opened, and zero ones do not.
func TestShow_NilComponentsAreLeftOut(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		w.Show(cockpit.Sources{
			Sessions:    map[string]*coordination.Session{"nil": nil, "zero": {}},
			Replicators: map[string]*distributeddata.Replicator{"nil": nil, "zero": {}},
			Singletons:  map[string]*singleton.Singleton{"nil": nil, "zero": {}},
			Shards: []cockpit.Shards{nil, (*sharding.Region[*wrapperspb.StringValue])(nil),
				&sharding.Region[*wrapperspb.StringValue]{}},
		})
		page := w.watch()
		defer page.end()
		require.NotEmpty(t, page.take())
		o := get[api.Overview](w, "overview")
		require.Len(t, o.Sessions, 1)
		require.Len(t, o.Replicators, 1)
		require.Len(t, o.Singletons, 1)
		require.Len(t, o.Shards, 1)
		require.ErrorIs(t, w.Attach(nil, cockpit.Sources{}), cockpit.ErrInvalid)
	})
}
