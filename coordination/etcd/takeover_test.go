//go:build stores

package etcd_test

import (
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/takeover"
)

func TestTakeover(t *testing.T) {
	p := prefix(t)
	takeover.Run(t, p, open(t, connect(t, server(t)), p), 16*time.Second)
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
