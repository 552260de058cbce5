//go:build stores

package zookeeper_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/zookeeper"
)

func TestTakeover(t *testing.T) {
	path, proxy := fresh(), faulty.New(t, servers(t)[0])
	s := open(t, zookeeper.Config{Path: path, Servers: []string{proxy.Address}})
	takeover.Run(t, path, s, 16*time.Second, proxy)
}

func holdAll(path string) error {
	s, err := zookeeper.Open(context.Background(), zookeeper.Config{Path: path,
		Servers: strings.Split(os.Getenv("CONCORD_ZOOKEEPER"), ",")})
	if err != nil {
		return err
	}
	return takeover.Hold(s)
}
