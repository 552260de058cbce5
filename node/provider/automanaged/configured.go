package automanaged

import (
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/settings"
)

// Configured decodes and checks a Config for a configuration file (package config), and returns New
// of it.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	c, err := settings.Read[Config](decode)
	if err != nil {
		return nil, err
	}
	return New(c), nil
}
