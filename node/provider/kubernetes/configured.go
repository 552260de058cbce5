package kubernetes

import "github.com/asynkron/protoactor-go/cluster"

// Configured is for a configuration file (package config): Config, and New. Whether the process runs in a pod is
// looked at when a life begins.
func Configured(decode func(into any) error) (func() (cluster.ClusterProvider, error), error) {
	var c Config
	if err := decode(&c); err != nil {
		return nil, err
	}
	return New(c), nil
}
