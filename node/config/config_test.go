package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/config"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// kinds returns the kinds with small clients; package kindstest has all.
func kinds() config.Kinds {
	return config.Kinds{
		Providers: map[string]config.Provider{
			"automanaged": automanaged.Configured,
			"none": func(func(any) error) (func() (cluster.ClusterProvider, error), error) {
				return nil, nil
			},
		},
		Leases: map[string]leaseconfig.Opener{"memory": memory.Opener, "file": file.Opener},
		Disks:  map[string]config.Disk{"bbolt": bbolt.Opener},
	}
}

// read reads a text with variables given as NAME=value.
func read(text string, environ ...string) (*config.File, error) {
	return config.Read(strings.NewReader(text), func(name string) (string, bool) {
		for _, pair := range environ {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}, kinds())
}

// problems returns the problems of a text, one per line.
func problems(t *testing.T, text string, environ ...string) []string {
	t.Helper()
	_, err := read(text, environ...)
	require.ErrorIs(t, err, config.ErrInvalid)
	lines := strings.Split(err.Error(), "\n\t")
	if len(lines) > 1 {
		return lines[1:]
	}
	return []string{strings.TrimPrefix(err.Error(), "config: invalid: concord.yaml: ")}
}

const whole = `
node:
  cluster: shop
  host: 10.0.0.1
  port: ${PORT}
  advertised: "shop-1:${PORT}"
  roles: [web, "${ROLE:-worker}"]
  secret-file: /etc/shop/secret
  public: [orders]
  max-message: 8388608
  guard: shop-1
  host-without-majority: true
  min-members: 3
  start-timeout: 20s
  on-split: exit
  no-signals: true
  provider: {class: automanaged, port: 6331, hosts: ["10.0.0.1:6331", "10.0.0.2:6331"]}
  lease: shop
leases:
  defaults: {heartbeat-timeout: 60s, heartbeat-interval: 10s, lease-class: file, store: {directory: /leases}}
  shop: {heartbeat-interval: 6s, owner: "10.0.0.1:7000"}
  ever: {heartbeat-timeout: infinite, heartbeat-interval: 1s, lock-delay: 1m, lease-class: memory, store: {}}
  plain:
replicators:
  carts:
    min-members: 3
    durable: ["*"]
    store: {class: bbolt, directory: /data, max-size: 100000000}
  flags:
singletons:
  billing: {hand-over: 5s, tries: 3}
sharding:
  account: {shards: 512, idle: 10m}
`

func TestRead_EverySectionIsThere(t *testing.T) {
	f, err := read(whole, "PORT=7001", "ROLE=")
	require.NoError(t, err)
	n := f.Node
	require.NotNil(t, n.Provider)
	require.NotNil(t, n.Store)
	require.Equal(t, "10.0.0.1:7000", n.Session.Owner)
	require.Equal(t, []time.Duration{time.Minute, 6 * time.Second}, []time.Duration{n.Session.TTL,
		n.Session.RenewInterval})
	n.Provider, n.Store, n.Session = nil, nil, coordination.Config{}
	require.Equal(t, node.RunConfig{
		Cluster: "shop",
		Remote: node.Config{
			Host: "10.0.0.1", Port: 7001, Advertised: "shop-1:7001", Roles: []string{
				"web", "worker"},
			SecretFile: "/etc/shop/secret", Public: []string{"orders"}, MaxMessage: 8 << 20,
		},
		Guard: "shop-1", HostWithoutMajority: true,
		MinMembers: 3, StartTimeout: 20 * time.Second, OnSplit: node.Exit, NoSignals: true,
	}, n)

	ever, err := f.Lease("ever")
	require.NoError(t, err)
	require.Equal(t, coordination.Config{RenewInterval: time.Second, Forever: true,
		LockDelay: time.Minute}, ever.Config)
	plain, err := f.Lease("plain")
	require.NoError(t, err)
	require.Equal(t, "file", plain.LeaseClass)
	carts, err := f.Replicator("carts")
	require.NoError(t, err)
	require.NotNil(t, carts.OpenStore)
	require.Equal(t, distributeddata.Config{Name: "carts", MinMembers: 3, Durable: []string{"*"}},
		carts.Config)
	flags, err := f.Replicator("flags")
	require.NoError(t, err)
	require.Nil(t, flags.OpenStore)
	billing, err := f.Singleton("billing")
	require.NoError(t, err)
	require.Equal(t, singleton.Config{Name: "billing", HandOver: 5 * time.Second, Tries: 3},
		billing)
	account, err := f.Sharding("account")
	require.NoError(t, err)
	require.Equal(t, sharding.Config{Type: "account", Shards: 512, Idle: 10 * time.Minute}, account)
	for _, ask := range []func() error{
		func() error { _, err := config.Read(nil, os.LookupEnv, kinds()); return err },
		func() error { // without a lookup function no variable is set
			_, err := config.Read(strings.NewReader("node: ${UNSET}"), nil, kinds())
			return err
		},
		func() error { _, err := f.Lease("defaults"); return err },
		func() error { _, err := f.Replicator("cart"); return err },
		func() error { _, err := f.Singleton("x"); return err },
		func() error { _, err := f.Sharding("x"); return err },
	} {
		require.ErrorIs(t, ask(), config.ErrInvalid)
	}
}

// A lease with inherit needs no owner in the file: that of the member's session is its host:port,
// and another comes with the call of Provider.Lease. A member without either is refused by
// node.Run.
func TestRead_InheritTakesTheOwnerOfTheMember(t *testing.T) {
	for port, want := range map[string]string{"7000": "", "0": "Inherit needs Owner"} {
		f, err := read(`
node:
  cluster: shop
  port: ` + port + `
  provider: {class: automanaged, hosts: ["127.0.0.1:6331"]}
  lease: shop
leases:
  shop: {lease-class: memory, inherit: true}
`)
		require.NoError(t, err)
		err = settings.Check(f.Node)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// The settings of the sections reach the stores.
func TestRead_StoresOpenAsTheFileSays(t *testing.T) {
	dir := t.TempDir()
	f, err := read(`
leases:
  a: {lease-class: file, store: {directory: "${DIR}/leases"}}
  b: {lease-class: memory}
replicators:
  carts: {durable: ["*"], store: {class: bbolt, directory: "${DIR}/carts"}}
`, "DIR="+dir)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "leases"), "nothing is opened by reading")
	p, err := f.Provider()
	require.NoError(t, err)
	for _, location := range []string{"a", "b"} {
		l, drop, err := p.Lease(location, "x", "me")
		require.NoError(t, err)
		g, err := l.TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, g.Release(t.Context()))
		require.NoError(t, drop(t.Context()))
	}
	require.NoError(t, p.Close(t.Context()))
	require.DirExists(t, filepath.Join(dir, "leases"))
	carts, err := f.Replicator("carts")
	require.NoError(t, err)
	disk, err := carts.OpenStore()
	require.NoError(t, err)
	require.NoError(t, disk.Close())
	require.DirExists(t, filepath.Join(dir, "carts"))
}

func TestRead_NothingIsAFile(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "null", "node:\nleases:\n"} {
		f, err := read(text)
		if text == "node:\nleases:\n" {
			require.ErrorContains(t, err, "cluster, the name of the cluster, must be set")
			continue
		}
		require.NoError(t, err, text)
		require.Empty(t, f.Node)
	}
}

func TestLoad_NamesItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "shop.yaml")
	_, err := config.Load(name, kinds())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(name,
		[]byte(`leases: {a: {lease-class: "${CONCORD_TEST_CLASS}"}}`), 0o600))
	_, err = config.Load(name, kinds())
	require.EqualError(t, err, "config: invalid: "+name+
		": line 1: leases.a.lease-class: variable CONCORD_TEST_CLASS is not set; "+
		"${CONCORD_TEST_CLASS:-…} would have a default")
	t.Setenv("CONCORD_TEST_CLASS", "memory")
	_, err = config.Load(name, kinds())
	require.NoError(t, err)
}

// A failing reader is not reported as an invalid file.
func TestRead_ReaderFails(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := config.Read(failing{broken}, os.LookupEnv, kinds())
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, config.ErrInvalid)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
