//go:build stores

package etcd_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if prefix, is := takeover.Place(); is {
		fmt.Fprintln(os.Stderr, holdAll(prefix))
		os.Exit(1)
	}
	if where := os.Getenv("CONCORD_WORKER"); where != "" {
		if err := worker(where); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// server returns the endpoints of a real etcd. Without one these tests fail: make stores starts it.
func server(t testing.TB) []string {
	t.Helper()
	endpoints := os.Getenv("CONCORD_ETCD")
	if endpoints == "" {
		t.Fatal("CONCORD_ETCD names no server: run make stores")
	}
	return strings.Split(endpoints, ",")
}

var quiet = zap.NewNop()

func connect(t testing.TB, endpoints []string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second,
		Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// prefix returns a different prefix for each test, so that tests share nothing.
func prefix(t testing.TB) string { return "test/" + t.Name() + "/" + rand.Text() + "/" }

func open(t testing.TB, client *clientv3.Client, prefix string) etcd.Store {
	t.Helper()
	s, err := etcd.New(client, etcd.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	client := connect(t, server(t))
	prefixes := sync.Map{} // of the stores
	begin := func(t *testing.T, prefix string) leasestore.Store {
		s := open(t, client, prefix)
		prefixes.Store(s, prefix)
		return s
	}
	prefixOf := func(s leasestore.Store) string {
		p, _ := prefixes.Load(s)
		return p.(string)
	}
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		return begin(t, prefix(t))
	}, leasetest.Options{
		Outside: true, TokensJump: true,
		Reopen: func(t *testing.T, s leasestore.Store) (leasestore.Store, error) {
			return begin(t, prefixOf(s)), nil
		},
		Delete: func(s leasestore.Store, name string) error {
			base := s.(etcd.Store).LockName(name)
			_, err := client.Txn(t.Context()).Then(clientv3.OpDelete(base),
				clientv3.OpDelete(base+"/", clientv3.WithPrefix())).Commit()
			return err
		},
		Damage: func(s leasestore.Store, name string) error {
			_, err := client.Put(t.Context(), s.(etcd.Store).LockName(name), "hello")
			return err
		},
	})
}
