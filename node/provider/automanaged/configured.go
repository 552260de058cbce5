package automanaged

import "github.com/asynkron/protoactor-go/cluster"

// Configured decodes and checks a Config for a configuration file (package config), and returns New
// of it.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	var c Config
	if err := decode(&c); err != nil {
		return nil, err
	}
	return New(c), c.validate()
}
