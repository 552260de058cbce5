package kubernetes

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/concord-go/concord/coordination/leasestore"
)

// withOwnLimit returns the leases for requests that do not wait for those of others: they have a
// limit of their own. A client that is not client-go's, as one for tests, is used as it is.
func withOwnLimit(client clientv1.LeasesGetter, namespace string) clientv1.LeaseInterface {
	c, ok := client.(interface{ RESTClient() rest.Interface })
	if !ok {
		return client.Leases(namespace)
	}
	if r, ok := c.RESTClient().(*rest.RESTClient); !ok || r == nil {
		return client.Leases(namespace)
	}
	return clientv1.New(limited{c.RESTClient(),
		flowcontrol.NewTokenBucketRateLimiter(requests, burst)}).Leases(namespace)
}

// urgent reports whether a call must not wait for others: it renews a lease, or is about the record
// of a session.
func urgent(name string, next leasestore.Record) bool {
	return next.Attempt > 1 || strings.HasPrefix(name, leasestore.SessionRecords)
}

// of returns the leases for a call: Swap has a next record.
func (s *store) of(name string, next leasestore.Record) clientv1.LeaseInterface {
	if urgent(name, next) {
		return s.renewing
	}
	return s.leases
}

// limited is a client with a limit of its own.
type limited struct {
	rest.Interface
	limit flowcontrol.RateLimiter
}

// GetRateLimiter implements rest.Interface, as the other methods do.
func (l limited) GetRateLimiter() flowcontrol.RateLimiter { return l.limit }

func (l limited) Verb(verb string) *rest.Request { return l.Interface.Verb(verb).Throttle(l.limit) }
func (l limited) Post() *rest.Request            { return l.Interface.Post().Throttle(l.limit) }
func (l limited) Put() *rest.Request             { return l.Interface.Put().Throttle(l.limit) }
func (l limited) Get() *rest.Request             { return l.Interface.Get().Throttle(l.limit) }
func (l limited) Delete() *rest.Request          { return l.Interface.Delete().Throttle(l.limit) }

func (l limited) Patch(t types.PatchType) *rest.Request {
	return l.Interface.Patch(t).Throttle(l.limit)
}
