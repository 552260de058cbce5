//go:build stores

package kubernetes_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if prefix, is := takeover.Place(); is {
		fmt.Fprintln(os.Stderr, holdAll(prefix))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// env returns a variable that make stores sets. Without a server these tests fail.
func env(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is empty: run make stores", name)
	}
	return v
}

// config is the configuration of the account "contender", which has exactly the rights of the
// manifest.
func config(t testing.TB) *rest.Config {
	t.Helper()
	return &rest.Config{Host: env(t, "CONCORD_KUBERNETES"),
		BearerToken: env(t, "CONCORD_KUBERNETES_TOKEN"), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// operator may do everything.
func operator(t testing.TB) clientv1.LeaseInterface {
	cfg := config(t)
	cfg.BearerToken = env(t, "CONCORD_KUBERNETES_ADMIN")
	return client(t, cfg).Leases(namespace)
}

const namespace = "concord"

func client(t testing.TB, cfg *rest.Config) *clientv1.CoordinationV1Client {
	t.Helper()
	h, err := rest.HTTPClientFor(cfg)
	must(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(h.Transport) })
	c, err := clientv1.NewForConfigAndClient(cfg, h)
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// store gives each test its own names, because all tests share one namespace.
type store struct {
	kubernetes.Store
	prefix string
}

func (s store) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	return s.Store.Load(ctx, s.prefix+name)
}

func (s store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	return s.Store.Swap(ctx, s.prefix+name, old, next)
}

func (s store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return s.Store.Watch(ctx, s.prefix+name)
}

func fresh() string { return "t-" + strings.ToLower(rand.Text()) + "-" }

func (s store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	return s.Store.Remove(ctx, s.prefix+name, old)
}

func (s store) LoadDocument(ctx context.Context, name string) ([]byte, leasestore.Version, error) {
	return s.Store.LoadDocument(ctx, s.prefix+name)
}

func (s store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	return s.Store.SwapDocument(ctx, s.prefix+name, old, next)
}

func open(t testing.TB, c clientv1.LeasesGetter, prefix string) store {
	t.Helper()
	return openWith(t, c, prefix, kubernetes.Config{Namespace: namespace})
}

func openWith(t testing.TB, c clientv1.LeasesGetter, prefix string, cfg kubernetes.Config) store {
	t.Helper()
	s, err := kubernetes.New(c, cfg)
	must(t, err)
	return store{s, prefix}
}

// TestConformance tests an Exclusive store, which has all abilities of other stores: a session that
// renews each of its leases behaves the same on both. The other tests have only the rights of the
// manifest.
func TestConformance(t *testing.T) {
	account, cfg := config(t), kubernetes.Config{Namespace: namespace, Exclusive: true}
	account.BearerToken = env(t, "CONCORD_KUBERNETES_ADMIN") // to delete
	c, leases := client(t, account), operator(t)
	object := func(s leasestore.Store, name string) string {
		return kubernetes.ObjectName(s.(store).prefix + name)
	}
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		return openWith(t, c, fresh(), cfg)
	}, leasetest.Options{
		Outside: true, TokensJump: true,
		Reopen: func(t *testing.T, s leasestore.Store) (leasestore.Store, error) {
			return openWith(t, client(t, account), s.(store).prefix, cfg), nil
		},
		Delete: func(s leasestore.Store, name string) error {
			return leases.Delete(t.Context(), object(s, name), metav1.DeleteOptions{})
		},
		Damage: func(s leasestore.Store, name string) error {
			body, err := json.Marshal(
				map[string]any{"metadata": map[string]any{"annotations": map[string]any{
					"concord-go.github.io/token": "many"}}})
			must(t, err)
			_, err = leases.Patch(t.Context(), object(s, name), types.MergePatchType, body,
				metav1.PatchOptions{})
			return err
		},
	})
}

func TestLive(t *testing.T) {
	prefixes := sync.Map{} // of the parts
	leasetest.Live(t, func(t *testing.T) leasestore.Store {
		prefix, _ := prefixes.LoadOrStore(t.Name(), fresh())
		return open(t, client(t, config(t)), prefix.(string))
	}, leasetest.LiveOptions{For: 25 * time.Second,
		Disturb: faulty.Restart(t, env(t, "CONCORD_KUBERNETES_RESTART"), 6*time.Second)})
}
