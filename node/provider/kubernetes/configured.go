package kubernetes

import "github.com/asynkron/protoactor-go/cluster"

// Configured decodes a Config for a configuration file (package config), and returns New of it. The
// environment of the pod is checked when an incarnation begins.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	var c Config
	if err := decode(&c); err != nil {
		return nil, err
	}
	return New(c), nil
}
