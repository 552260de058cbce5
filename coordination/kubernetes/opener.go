package kubernetes

import (
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
)

var _ leaseconfig.Opener = Opener

// Opener reads Config for a Provider or a configuration file, in a pod. It opens the store with
// InCluster.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	var c Config
	if err := decode(&c); err != nil {
		return nil, err
	}
	if c.Namespace != "" {
		if err := c.validate(); err != nil {
			return nil, err
		}
	}
	return inPod(c), nil
}
