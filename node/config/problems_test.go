package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/node/config"
)

// Every problem of a file is reported with its line and key, in the wording of the file.
func TestProblems_AllAtOnceByLineAndKey(t *testing.T) {
	got := problems(t, `node:
  cluster: shop
  port: 70000
  hosst: x
  port: 1
  start-timeout: soon
  tls: {cert: a}
  provider: {class: automangaed, hosts: [a]}
  lease: shpo
leases:
  defaults: {heartbeat-timout: 3s, margin: 1}
  shop:
    lease-class: file
    store: {directry: /x}
  slow: {lease-class: memory, heartbeat-timeout: 1m, heartbeat-interval: 31s, store: {size: 1}}
replicators:
  carts: {name: x, min-members: -2, durable: ["*"]}
  flags: [a]
singletons:
  "b ad": {tries: 1001}
sharding:
  account: {type: account, shards: 1.5}
cheese: 1
`)
	require.Equal(t, []string{
		`line 4: node.hosst: unknown key, did you mean host?`,
		`line 5: node.port: is set twice, first in line 3`,
		`line 6: node.start-timeout: "soon" is not a duration, such as 500ms, 30s or 2m`,
		`line 7: node.tls: tls needs cert ("a"), key ("") and at least one of authorities ([])`,
		`line 8: node.provider.class: "automangaed" is not known, did you mean automanaged?`,
		`line 9: node.lease: no "shpo" in section leases, only ["shop" "slow"]`,
		`line 11: leases.defaults.heartbeat-timout: unknown key, did you mean heartbeat-timeout?`,
		`line 11: leases.defaults.margin: "1" is not a duration, such as 500ms, 30s or 2m`,
		`line 14: leases.shop.store.directry: unknown key, did you mean directory?`,
		`line 15: leases.slow.store.size: unknown key: nothing can be set here`,
		`line 15: leases.slow.heartbeat-interval: heartbeat-interval (31s) must be below half of heartbeat-timeout (1m0s)`,
		`line 15: leases.slow.heartbeat-timeout: heartbeat-timeout less clock-rate-error, margin (1.2s) and drain (10s) leaves 48.2s of 1m0s, which must be at least 2·heartbeat-interval (31s) + lease-operation-timeout (6s) = 1m8s`,
		`line 17: replicators.carts.name: must not be set: the key of the section is the name`,
		`line 17: replicators.carts.min-members: min-members is -2, must be from 1 to 10000, or -1 for nothing but Local`,
		`line 17: replicators.carts.durable: durable lists 1 entries, and store is <nil>: set both or none`,
		`line 18: replicators.flags: must be keys with values, is a list`,
		`line 20: singletons.b ad: name "b ad" must consist of letters, digits and any of -_.`,
		`line 20: singletons.b ad.tries: tries is 1001, it must be from 1 to 1000`,
		`line 22: sharding.account.shards: "1.5" is not a whole number in range`,
		`line 22: sharding.account.type: must not be set: the key of the section is the type`,
		`line 23: cheese: unknown key, must be one of leases, node, replicators, sharding, singletons`,
	}, got)
}

// Each rule of each section is tested at its edge, in the wording of the file.
func TestProblems_OfEachSection(t *testing.T) {
	const head = "node: {cluster: c, provider: {class: automanaged, hosts: ['a:1']}"
	for text, want := range map[string]string{
		"node: {cluster: c, provider: }":    `node.provider.class: must be set to one of ["automanaged" "none"]`,
		"leases: {a: {lease-class: redis}}": `leases.a.lease-class: "redis" is none of ["file" "memory"]`,
		"leases: {a: {}}":                   `leases.a.lease-class: must be set to one of ["file" "memory"]`,
		head + ", port: -1}":                "node.port: port (-1) must be from 0 to 65535",
		head + ", max-message: 8388607}":    "node.max-message: max-message (8388607) must be from 8388608 to 1073741824",
		head + ", advertised: Host}":        `node.advertised: advertised ("Host") must be host:port with a port from 1 to 65535`,
		head + ", host: 10.0.0.1}": `node.host: host ("10.0.0.1") is not a loopback address, and anyone who reaches the port can send messages to ` +
			`actors; set tls or secret-file, listen on loopback, or set plaintext-unsafe if the network is closed`,
		head + ", tls: {cert: Key}}":                                                           `node.tls: tls needs cert ("Key"), key ("") and at least one of authorities ([])`,
		head + ", roles: [a, a]}":                                                              `node.roles: roles: "a" is listed twice`,
		head + ", on-split: leave}":                                                            `node.on-split: "leave" is none of rejoin, re-exec and exit`,
		head + ", guard: a}":                                                                   "node.guard: guard is a lease: lease must be set",
		head + ", rejoins-per-hour: 3601}":                                                     "node.rejoins-per-hour: rejoins-per-hour (3601) must be from 1 to 3600",
		head + ", rejoins-per-hour: 99999999999999999999}":                                     `node.rejoins-per-hour: "99999999999999999999" is not a whole number in range`,
		head + ", stop-timeout: 9ms}":                                                          "node.stop-timeout: stop-timeout (9ms) must be from 10ms to 1h0m0s",
		head + ", no-signals: maybe}":                                                          `node.no-signals: "maybe" is neither true nor false`,
		head + ", lease: defaults}\nleases: {defaults: {lease-class: memory}}":                 `node.lease: no "defaults" in section leases, only []`,
		head + "}\nsingletons: {a: }":                                                          "node.lease: must name a section of leases: singletons and sharding need one",
		"node: {cluster: c}":                                                                   "node: provider must be set: it makes the cluster provider of each incarnation",
		"node: {cluster: c, provider: {class: none}}":                                          `node.provider.class: the opener of "none" returned no function`,
		"node: {cluster: c, provider: {class: none, class: none}}":                             "node.provider.class: is set twice, first in line 1",
		"node: {cluster: c, provider: automanaged}":                                            "node.provider: must be keys with values, is one value",
		"node: {cluster: c, provider: {class: automanaged, hosts: [a]}}":                       `node.provider.hosts: hosts: "a" must be host:port with a port from 1 to 65535`,
		"node: {cluster: c, provider: {class: automanaged, hosts: ['a:1'], refresh: 49ms}}":    "node.provider.refresh: refresh (49ms) must be from 50ms to 1m0s",
		"leases: {a: {lease-class: file}}":                                                     "leases.a.store: directory must be set",
		"leases: {a: {lease-class: memory, owner: 3, forever: 3}}":                             `leases.a.forever: "3" is neither true nor false`,
		"leases: {a: {lease-class: memory, clock-rate-error: 0.5}}":                            "leases.a.clock-rate-error: clock-rate-error (0.5) must be at least 0 and below 0.5",
		"leases: {a: {lease-class: memory, clock-rate-error: x}}":                              `leases.a.clock-rate-error: "x" is not a number`,
		"leases: {a: b}":                                                                       "leases.a: must be keys with values, is one value",
		"leases: {defaults: b}":                                                                "leases.defaults: must be keys with values, is one value",
		"replicators: {a: {durable: ['*']}}":                                                   "replicators.a.durable: durable lists 1 entries, and store is <nil>: set both or none",
		"replicators: {a: {durable: ['*'], store: {class: bbolt}}}":                            "replicators.a.store: directory must be set",
		"replicators: {a: {durable: ['*'], store: {class: bbolt, directory: x, max-size: 1}}}": "replicators.a.store.max-size: max-size (1) must be from 67108864 to",
		"replicators: {a: {heartbeat-interval: 9ms}}":                                          "replicators.a.heartbeat-interval: heartbeat-interval is 9ms, must be from 10ms to 1m",
		"replicators: {a: {durable: a}}":                                                       "replicators.a.durable: must be a list, is one value",
		"replicators: {a: {durable: [[a]]}}":                                                   "replicators.a.durable[0]: must be one value, is a list",
		"singletons: {a: {min-backoff: 2s, max-backoff: 1s}}":                                  "singletons.a.min-backoff: min-backoff (2s) must not be above max-backoff (1s)",
		"sharding: {a: {shards: 4097}}":                                                        "sharding.a.shards: shards is 4097, it must be from 1 to 4096",
		"sharding: {a: {remember: true, idle: 1m}}":                                            "sharding.a.remember: remember keeps entities running, so idle (1m0s) and limit (0) must be 0",
	} {
		got := problems(t, text)
		if len(got) != 1 || !strings.HasPrefix(got[0], "line ") || !strings.Contains(got[0], want) {
			t.Errorf("%.120s\n got %q\nwant %q", text, got, want)
		}
	}
}

// YAML features that a configuration does not need are rejected.
func TestProblems_OfTheText(t *testing.T) {
	for text, want := range map[string]string{
		"node: &a {cluster: c}\nleases: *a": "anchors and aliases are not supported",
		"a: &a [x]\nb: [*a, *a]":            "line 1: a: anchors and aliases are not supported",
		"node: {<<: {cluster: c}}":          "node: has a key that is not text",
		"node: {[a]: b}":                    "node: has a key that is not text",
		"node: {cluster: !!str c}":          "node.cluster: tags such as !!str are not supported",
		"node: {cluster: !mine c}":          "tags such as !mine are not supported",
		"- a":                               "must be keys with values, is a list",
		"node: {":                           "line 1: did not find",
		"node:\n\tcluster: a":               "line 2: found character that cannot start any token",
		"node:\n---\nleases:":               "line 2: the file has a second document",
		"# " + strings.Repeat("x", 1<<20):   "has more than 1048576 bytes",
		"a: " + strings.Repeat("[", 20) + strings.Repeat("]", 20): "a: is nested more than 16 deep",
		"a: " + strings.Repeat("[", 20000):                        "exceeded max depth",
		"node: {cluster: \"a\xff\"}":                              "invalid",
		"leases: {a: {lease-class: ${X}}}":                        "did not find expected",
	} {
		got := strings.Join(problems(t, text), "\n")
		if !strings.Contains(got, want) {
			t.Errorf("%.60q\n got %q\nwant %q", text, got, want)
		}
	}
}

// A key that resembles no known key gets no suggestion; underscores and capitals count as
// misspellings.
func TestProblems_NearestKey(t *testing.T) {
	for key, want := range map[string]string{
		"heartbeat_timeout": "did you mean heartbeat-timeout?",
		"Heartbeat-Timeout": "did you mean heartbeat-timeout?",
		"hearbteat-timeout": "did you mean heartbeat-timeout?", "fiar": "did you mean fair?",
		"ttl":                   "must be one of clock-rate-error, drain,",
		strings.Repeat("k", 65): "must be one of clock-rate-error",
	} {
		require.Contains(t, problems(t, "leases: {a: {lease-class: memory, "+key+": 1}}")[0], want)
	}
}

func TestVariables(t *testing.T) {
	for text, want := range map[string]string{
		"${A}": "one", "x-${A}-${A}": "x-one-one", "${B:-two}": "two", "${A:-two}": "one",
		"${EMPTY:-three}": "three", "$${A}": "${A}",
		"$$": "$", "${NUMBER}": "7", `"${NUMBER}"`: "7", `'${A}'`: "one", "${B:-}": "",
		"${YAML}": "{a: [b]} # c", "${B:-a:b/c}": "a:b/c",
	} {
		f, err := read("leases:\n  a:\n    lease-class: memory\n    owner: "+text, "A=one",
			"NUMBER=7", "EMPTY=", "YAML={a: [b]} # c")
		require.NoError(t, err, text)
		a, err := f.Lease("a")
		require.NoError(t, err)
		require.Equal(t, want, a.Config.Owner, text)
	}
	f, err := read("singletons: {a: {tries: '${N}', settle: \"${D}\"}}", "N=7", "D=7s")
	require.ErrorContains(t, err, `singletons.a.tries: "7" is not a whole number in range`,
		"quotes make a text")
	require.Nil(t, f)
	f, err = read("singletons:\n  a:\n    tries: ${N}\n    settle: ${D}", "N=7", "D=7s")
	require.NoError(t, err)
	a, err := f.Singleton("a")
	require.NoError(t, err)
	require.Equal(t, 7, a.Tries)
}

func TestVariables_Problems(t *testing.T) {
	for text, want := range map[string]string{
		"${A}":   "leases.a.owner: variable A is not set; ${A:-…} would have a default",
		"a$b":    "has a $ that begins no ${NAME}",
		"${a b}": "has a $ that begins no ${NAME}", "${}": "has a $ that begins no ${NAME}",
		"${EMPTY}": "variable EMPTY is not set",
		"${LONG}":  "has more than 65536 bytes with its variables",
	} {
		require.Contains(t, problems(t, "leases:\n  a:\n    lease-class: memory\n    owner: "+text,
			"EMPTY=", "LONG="+strings.Repeat("x", 65537))[0], want, text)
	}
	for _, text := range []string{"${A:-", "${BIG}"} {
		text = strings.Repeat(text, 20_000)
		require.Len(t, problems(t, "leases:\n  a:\n    lease-class: memory\n    owner: "+text,
			"BIG="+strings.Repeat("x", 60_000)), 1, "%.10s", text)
	}
	require.Len(t, problems(t, "leases: {a: {lease-class: memory, '${A}': 1}}"), 1,
		"keys have no variables")
}

// Openers are foreign code and may misbehave.
func TestOpeners_MayDoWhatTheyLike(t *testing.T) {
	odd := func(opener leaseconfig.Opener) error {
		k := kinds()
		k.Leases["odd"] = opener
		_, err := config.Read(
			strings.NewReader("leases: {a: {lease-class: odd, store: {size: 1}}}"), nil, k)
		return err
	}
	open := func() (coordination.Store, error) { return memory.New(), nil }
	type settings struct {
		Size int `yaml:"size"`
	}
	require.NoError(t, odd(func(func(any) error) (func() (coordination.Store, error), error) {
		return open, nil
	}), "settings that nobody reads")
	require.NoError(t, odd(func(decode func(any) error) (func() (coordination.Store,
		error), error) {
		return open, errors.Join(decode(&settings{}), decode(&settings{}),
			decode(&map[string]int{}))
	}))
	require.ErrorContains(t, odd(
		func(decode func(any) error) (func() (coordination.Store, error), error) {
			return open, errors.Join(decode(settings{}), decode(nil), decode((*settings)(nil)))
		}), "decoded into a pointer, not config_test.settings")
	require.ErrorContains(t, odd(func(func(any) error) (func() (coordination.Store, error), error) {
		return open, errors.New("Size is odd")
	}), "leases.a.store: Size is odd")
	require.ErrorContains(t, odd(
		func(decode func(any) error) (func() (coordination.Store, error), error) {
			_ = decode(&settings{})
			return nil, errors.New("Size is odd")
		}), "line 1: leases.a.store.size: size is odd")
	require.ErrorContains(t, odd(
		func(decode func(any) error) (func() (coordination.Store, error), error) {
			_ = decode(&struct{}{}) // the unwanted settings are reported all the same
			return open, nil
		}), "leases.a.store.size: unknown key")
}

func FuzzRead(f *testing.F) {
	f.Add(whole, "7000")
	f.Add("leases: {a: {lease-class: '${X}'}, defaults: {heartbeat-timeout: infinite}}", "memory")
	f.Add("node: {[a, b]: &x {c: *x}, <<: *x}\n--- !!binary\n", "")
	f.Add("replicators: {a: {store: {class: bbolt, class: badger}}}\nsingletons: {a: , b: }",
		"a: [b")
	f.Fuzz(func(t *testing.T, text, value string) {
		file, err := config.Read(strings.NewReader(text), func(string) (string, bool) {
			return value, true
		}, kinds())
		if (file == nil) == (err == nil) {
			t.Errorf("file %v, error %v", file, err)
		}
		if err != nil && !errors.Is(err, config.ErrInvalid) {
			t.Errorf("%v is not ErrInvalid", err)
		}
		if err == nil {
			if _, err := file.Provider(); err != nil {
				t.Errorf("a file without problems: %v", err)
			}
		}
	})
}
