package kindstest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/postgres"
	"github.com/concord-go/concord/coordination/zookeeper"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/node/config"
	providersetcd "github.com/concord-go/concord/node/provider/etcd"
	providerskubernetes "github.com/concord-go/concord/node/provider/kubernetes"
	providerszookeeper "github.com/concord-go/concord/node/provider/zookeeper"
)

func read(text string) (*config.File, error) {
	return config.Read(strings.NewReader(text), func(string) (string, bool) {
		return "", false
	}, config.Kinds{
		Providers: map[string]config.Provider{
			"etcd": providersetcd.Configured, "kubernetes": providerskubernetes.Configured,
			"zookeeper": providerszookeeper.Configured,
		},
		Leases: map[string]leaseconfig.Opener{
			"etcd": etcd.Opener, "postgres": postgres.Opener, "kubernetes": kubernetes.Opener,
			"zookeeper": zookeeper.Opener, "azureblob": azureblob.Opener,
		},
		Disks: map[string]config.Disk{"badger": badger.Opener},
	})
}

// Each rule of each store and provider is tested at its edge, in the wording of the file.
func TestProblems_OfEachKind(t *testing.T) {
	for text, want := range map[string]string{
		"node: {cluster: c, provider: {class: etcd, endpoints: [a], ttl: 2500ms}}":          "node.provider.ttl: ttl (2.5s) must be whole seconds from 2s to 10m0s",
		"node: {cluster: c, provider: {class: etcd, endpoints: [a], tls: {cert: x}}}":       `node.provider.tls: tls needs ca, and cert and key both or not at all: ca (""), cert ("x"), key ("")`,
		"node: {cluster: c, provider: {class: etcd, endpoints: [a], username: x}}":          "node.provider.username: username and password belong together",
		"node: {cluster: c, provider: {class: zookeeper, servers: [a]}}":                    `node.provider.servers: servers: "a" is not host:port`,
		"node: {cluster: c, provider: {class: zookeeper, servers: ['a:1'], tls: {key: x}}}": `node.provider.tls: tls needs ca, and cert and key both or not at all: ca (""), cert (""), key ("x")`,
		"leases: {a: {lease-class: etcd}}":                                                  "leases.a.store: endpoints must have one at least",
		"leases: {a: {lease-class: etcd, store: {endpoints: ['']}}}":                        "leases.a.store.endpoints: endpoints has an empty one",
		"leases: {a: {lease-class: etcd, store: {endpoints: [a], prefix: " +
			strings.Repeat("p", 1025) +
			"}}}": "leases.a.store.prefix: prefix of 1025 bytes, at most 1024",
		"leases: {a: {lease-class: etcd, store: {endpoints: [a], password: Hush}}}":                               "leases.a.store.password: username and password belong together",
		"leases: {a: {lease-class: etcd, store: {endpoints: [a], tls: {ca: x, key: y}}}}":                         `leases.a.store.tls: tls needs ca, and cert and key both or not at all: ca ("x"), cert (""), key ("y")`,
		"leases: {a: {lease-class: postgres}}":                                                                    "leases.a.store: url must be set",
		"leases: {a: {lease-class: postgres, store: {url: 'host=a', table: A}}}":                                  `leases.a.store.table: table "A" must be of a-z, 0-9 and _, perhaps after a schema and a dot, at most 50 bytes`,
		"leases: {a: {lease-class: postgres, store: {url: 'host=a', max-connections: 1}}}":                        "leases.a.store.max-connections: max-connections (1) must be from 2 to 1000",
		"leases: {a: {lease-class: kubernetes, store: {namespace: A_b}}}":                                         "leases.a.store.namespace: namespace \"A_b\": a lowercase RFC 1123 label must consist of",
		"leases: {a: {lease-class: zookeeper}}":                                                                   "leases.a.store: servers is empty",
		"leases: {a: {lease-class: zookeeper, store: {servers: ['a:1'], session-timeout: 999ms}}}":                "leases.a.store.session-timeout: session-timeout (999ms) must be from 1s to 576h0m0s",
		"leases: {a: {lease-class: zookeeper, store: {servers: ['a:1'], open-timeout: 61s}}}":                     "leases.a.store.open-timeout: open-timeout (1m1s) must be from 100ms to 1m",
		"leases: {a: {lease-class: zookeeper, store: {servers: ['a:1'], path: x}}}":                               `leases.a.store.path: path "x" is not the absolute path of a node`,
		"leases: {a: {lease-class: azureblob}}":                                                                   "leases.a.store: url must be set",
		"leases: {a: {lease-class: azureblob, store: {url: 'https://a'}}}":                                        "leases.a.store.url: url must be that of a container, as https://shop.blob.core.windows.net/leases",
		"leases: {a: {lease-class: azureblob, store: {url: 'http://a/b'}}}":                                       "leases.a.store.url: url must be of https, since tokens of an identity are not sent without",
		"leases: {a: {lease-class: azureblob, store: {url: 'https://a/b', account: x}}}":                          "leases.a.store.account: account and account-key belong together",
		"leases: {a: {lease-class: azureblob, store: {url: 'https://a/b', account: x, account-key: '?'}}}":        "leases.a.store.account-key: account-key is not base64",
		"leases: {a: {lease-class: azureblob, store: {url: 'https://a/b?sig=x', account: x, account-key: eA==}}}": "leases.a.store.url: url has a shared access signature, so account and account-key must not be set",
		"replicators: {a: {durable: ['*'], store: {class: badger, directory: x, reserve: 1}}}":                    "replicators.a.store.reserve: reserve (1) must be from 335544320 to",
	} {
		_, err := read(text)
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "line 1: "+want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.120s\n got %v\nwant %q", text, err, want)
		}
	}
}

// Errors reveal no secrets.
func TestProblems_TellNoSecret(t *testing.T) {
	_, err := read(`
leases:
  a: {lease-class: postgres, store: {url: "postgres://u:hush@db:port/x"}}
  b: {lease-class: azureblob, store: {url: "https://a/b", account: x, account-key: "hush?"}}
  c: {lease-class: zookeeper, store: {servers: ["a:1"], auth: hush}}
  d: {lease-class: etcd, store: {endpoints: [a], password: hush}}
`)
	require.ErrorIs(t, err, config.ErrInvalid)
	require.Len(t, strings.Split(err.Error(), "\n\t"), 5)
	require.NotContains(t, err.Error(), "hush")
}

// Valid values at each edge are accepted, and stores open without a server where possible.
func TestKinds_OpenAsTheFileSays(t *testing.T) {
	f, err := read(`
leases:
  etcd: {lease-class: etcd, store: {endpoints: ["127.0.0.1:1"], prefix: x/}}
  postgres: {lease-class: postgres, store: {url: "postgres://u:p@127.0.0.1:1/x", max-connections: 2, table: shop.leases}}
  keyed: {lease-class: azureblob, store: {url: "http://127.0.0.1:1/account/leases", account: account, account-key: aGVsbG8=}}
  signed: {lease-class: azureblob, store: {url: "https://127.0.0.1:1/leases?sig=x"}}
  identity: {lease-class: azureblob, store: {url: "https://127.0.0.1:1/leases"}}
`)
	require.NoError(t, err)
	p, err := f.Provider()
	require.NoError(t, err)
	for _, location := range []string{"etcd", "postgres", "keyed", "signed", "identity"} {
		_, drop, err := p.Lease(location, "x", "")
		require.NoError(t, err, location)
		require.NoError(t, drop(t.Context()))
	}
	require.NoError(t, p.Close(t.Context()))
}

// An error found on opening is an error of the store, not of the file.
func TestKinds_ThatDoNotOpen(t *testing.T) {
	for text, want := range map[string]string{
		`{lease-class: kubernetes}`: "does this run in a pod",
		`{lease-class: zookeeper, store: {servers: ["127.0.0.1:1"], open-timeout: 100ms}}`: "zookeeper: connecting",
		`{lease-class: etcd, store: {endpoints: [a], tls: {ca: /nowhere/ca.pem}}}`:         "/nowhere/ca.pem",
		`{lease-class: zookeeper, store: {servers: ["a:1"], tls: {ca: kinds_test.go}}}`:    "kinds_test.go: no certificate in PEM",
		`{lease-class: postgres, store: {url: "postgres://127.0.0.1:1/x", install: true}}`: "postgres: table concord_leases",
	} {
		f, err := read("leases: {a: " + text + "}")
		require.NoError(t, err, text)
		p, err := f.Provider()
		require.NoError(t, err, text)
		_, _, err = p.Lease("a", "x", "")
		require.ErrorContains(t, err, want)
		require.NoError(t, p.Close(t.Context()))
	}
}

// A key of badger can be read from a file.
func TestKinds_KeyFile(t *testing.T) {
	dir := t.TempDir()
	open := func(key string) error {
		require.NoError(t, os.WriteFile(dir+"/key", []byte(key), 0o600))
		f, err := read("replicators: {a: {durable: ['*'], store: {class: badger, directory: " +
			dir + "/data, key-file: " + dir + "/key}}}")
		require.NoError(t, err)
		a, err := f.Replicator("a")
		require.NoError(t, err)
		s, err := a.OpenStore()
		if err == nil {
			err = s.Close()
		}
		return err
	}
	require.ErrorContains(t, open("?"), "is not a key in base64")
	require.ErrorContains(t, open("aGVsbG8="), "Key has 5 bytes, not 16, 24 or 32")
	require.NoError(t, open("MDEyMzQ1Njc4OWFiY2RlZg==\n"))
	require.ErrorIs(t, open("MDEyMzQ1Njc4OWFiY2RlRg=="), store.ErrWrongKey)
}
