package zookeeper

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

func TestEntry_ComesBackAsItWas(t *testing.T) {
	m := roster.Member{ID: "shop@x", Host: "10.0.0.5", Port: 4020, Kinds: []string{
		"role.a"}, Order: 12}
	data, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode("_c_6f1e-actor-0000000012", data)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestListing(t *testing.T) {
	nodes := map[string]string{
		"actor-1": `{"id":"a","host":"h","port":1}`,
		"actor-2": `{"id":"b","address":"h","port":2}`,
		"actor-3": `no member`,
		"actor-x": `{"id":"c","host":"h","port":3}`,
		"actor-4": `{"id":"d","host":"h","port":0}`,
	}
	reads := map[string]int{}
	get := func(name string) ([]byte, error) {
		reads[name]++
		if data, ok := nodes[name]; ok {
			return []byte(data), nil
		}
		return nil, zk.ErrNoNode
	}
	l := listing{log: slog.New(slog.DiscardHandler), by: map[string]roster.Member{},
		refused: map[string]bool{}}
	for range 2 {
		if err := l.load([]string{"actor-1", "actor-2", "actor-3", "actor-x", "actor-4",
			"actor-gone"}, get); err != nil {
			t.Fatal(err)
		}
		if len(l.by) != 2 || l.by["actor-1"].ID != "a" || l.by["actor-2"].ID != "b" {
			t.Errorf("members %v", l.by)
		}
	}
	if reads["actor-1"] != 1 || reads["actor-3"] != 1 {
		t.Errorf("a node was read twice: %v", reads)
	}
	if err := l.load([]string{"actor-2"}, get); err != nil || len(l.by) != 1 ||
		len(l.refused) != 0 {
		t.Errorf("members %v, refused %v, %v", l.by, l.refused, err)
	}
	lost := func(string) ([]byte, error) { return nil, zk.ErrConnectionClosed }
	if err := l.load([]string{"actor-2", "actor-5"}, lost); !errors.Is(err,
		zk.ErrConnectionClosed) {
		t.Errorf("a lost connection: %v", err)
	}
}

func TestConfig_SaysWhatIsWrong(t *testing.T) {
	good := Config{Servers: []string{"localhost:2181"}}
	if err := good.validate(); err != nil {
		t.Errorf("the least configuration: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"Servers is empty":       func(c *Config) { c.Servers = nil },
		`"zk1" is not host:port`: func(c *Config) { c.Servers = []string{"zk1"} },
		`Base ("x")`:             func(c *Config) { c.Base = "x" },
		`Base ("/")`:             func(c *Config) { c.Base = "/" },
		"SessionTimeout (1ms)":   func(c *Config) { c.SessionTimeout = time.Millisecond },
		"SessionTimeout (1h0m0s": func(c *Config) { c.SessionTimeout = time.Hour },
		"AuthScheme and Auth":    func(c *Config) { c.Auth = "user:password" },
	} {
		c := good
		change(&c)
		if err := c.validate(); !errors.Is(err, errInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := New(c)(); !errors.Is(err, errInvalid) {
			t.Errorf("made with %s: %v", want, err)
		}
	}
}

// Any node below the cluster's node yields a member that can be listed, or an error.
func FuzzDecode(f *testing.F) {
	f.Add("_c_6f1e-actor-0000000012",
		[]byte(`{"id":"a","address":"h","port":1,"kinds":["role.x"]}`))
	f.Add("", []byte(`{"id":"a","host":"h","port":1}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		m, err := decode(name, data)
		if err == nil && (m.ID == "" || m.Host == "" || m.Port < 1 || m.Port > 65535) {
			t.Errorf("%q is member %+v", data, m)
		}
	})
}
