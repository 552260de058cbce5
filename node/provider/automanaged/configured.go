package automanaged

import "github.com/asynkron/protoactor-go/cluster"

// Configured is for a configuration file (package config): Config, checked, and New.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	var c Config
	if err := decode(&c); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return New(c), nil
}
