//go:build stores

package etcd_test

import (
	"testing"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestLive(t *testing.T) {
	endpoints, keys := server(t), prefix(t)
	leasetest.Live(t, func(t *testing.T) leasestore.Store {
		return open(t, connect(t, endpoints), keys+t.Name()+"/")
	}, leasetest.LiveOptions{})
}
