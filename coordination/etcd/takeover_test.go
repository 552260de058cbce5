//go:build stores

package etcd_test

import (
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/internal/takeover"
)

func TestTakeover(t *testing.T) {
	p, proxy := prefix(t), faulty.New(t, address(server(t)[0]))
	takeover.Run(t, p, configured(t, p, proxy.Address), 16*time.Second, proxy)
}

func holdAll(prefix string) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(os.Getenv("CONCORD_ETCD"), ","), Logger: quiet})
	if err != nil {
		return err
	}
	store, err := etcd.New(client, etcd.Config{Prefix: prefix})
	if err != nil {
		return err
	}
	return takeover.Hold(store)
}
