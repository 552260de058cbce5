//go:build stores

package kubernetes_test

import (
	"os"
	"strings"
	"testing"
	"time"

	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/kubernetes"
)

var exclusive = kubernetes.Config{Namespace: namespace, Exclusive: true}

// TestTakeover makes 50 requests a second, as the clients that InCluster makes.
func TestTakeover(t *testing.T) {
	cfg, prefix := config(t), fresh()
	cfg.QPS, cfg.Burst = 50, 100
	proxy := faulty.New(t, strings.TrimPrefix(cfg.Host, "https://"))
	cfg.Host = "https://" + proxy.Address
	takeover.Run(t, prefix, openWith(t, client(t, cfg), prefix, exclusive),
		time.Minute, proxy) // each watch takes two requests
}

// holdAll holds the leases with a client without a limit.
func holdAll(prefix string) error {
	c, err := clientv1.NewForConfig(&rest.Config{Host: os.Getenv("CONCORD_KUBERNETES"),
		BearerToken: os.Getenv("CONCORD_KUBERNETES_TOKEN"), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	s, err := kubernetes.New(c, exclusive)
	if err != nil {
		return err
	}
	return takeover.Hold(store{s, prefix})
}
