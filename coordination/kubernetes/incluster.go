package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"strings"

	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/opened"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/silence"
)

// namespaceFile contains the namespace of a pod with a service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Requests per second, and burst. The defaults of client-go, 5 and 10, delay renewals of many
// leases.
const (
	requests = 50
	burst    = 100
)

// InCluster returns a store for a process in a pod. The client uses the pod's service account. If
// Namespace is not set, it is that of the environment variable POD_NAMESPACE, or of the service
// account. The error is coordination.ErrInvalid, and names everything that is missing, if the
// process does not run in a pod or the pod has no service account token.
func InCluster(c Config) (Store, error) {
	s, err := inCluster(c, rest.InClusterConfig, namespaceFile)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// inPod returns a function that makes a store with InCluster, for node.RunConfig.Store.
func inPod(c Config) func() (leasestore.Store, error) {
	return func() (leasestore.Store, error) {
		return opened.As(InCluster(c))
	}
}

func inCluster(c Config, load func() (*rest.Config, error), file string) (*store, error) {
	cfg, err := load()
	if err != nil {
		err = fmt.Errorf("kubernetes: %w: no client for the API server, does this run in a pod with a service account? %w",
			coordination.ErrInvalid, err)
	}
	namespace, missing := namespaceOr(c.Namespace, file)
	if err := errors.Join(err, missing); err != nil {
		return nil, err
	}
	c.Namespace = namespace
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = requests, burst
	links := &silence.Links{}
	if cfg.Dial == nil {
		cfg.Dial = links.DialContext
	}
	client, err := clientv1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w: %w", coordination.ErrInvalid, err)
	}
	s, err := newStore(client, c)
	if err != nil {
		return nil, err
	}
	s.links = links
	return s, nil
}

func namespaceOr(set, file string) (string, error) {
	if set != "" {
		return set, nil
	}
	if fromEnv := os.Getenv("POD_NAMESPACE"); fromEnv != "" {
		return fromEnv, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf(
			"kubernetes: %w: Namespace (namespace) is not set, nor POD_NAMESPACE: %w",
			coordination.ErrInvalid, err)
	}
	return strings.TrimSpace(string(data)), nil
}
