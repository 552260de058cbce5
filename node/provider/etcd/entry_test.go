package etcd

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

func TestEntry_ComesBackAsItWas(t *testing.T) {
	m := roster.Member{ID: "shop@x", Host: "10.0.0.5", Port: 4020, Kinds: []string{
		"role.a"}, Order: 7}
	value, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(&mvccpb.KeyValue{Key: []byte("k"), Value: []byte(value), CreateRevision: 7})
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Foreign keys below the prefix must not be taken for members, nor stop the watch.
func TestListing_LeavesOutWhatIsNoMember(t *testing.T) {
	l := listing{log: slog.New(slog.DiscardHandler), by: map[string]roster.Member{}}
	good := `{"id":"a","address":"h","port":1}`
	event := func(kind, key, value string) *clientv3.Event {
		e := &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)}}
		if kind == "delete" {
			e.Type = clientv3.EventTypeDelete
		}
		return e
	}
	for _, bad := range []string{``, `[]`, `{"id":"a","port":1}`, `{"host":"h","port":1}`,
		`{"id":"a","host":"h","port":65536}`} {
		l.apply([]*clientv3.Event{event("put", "k", good)})
		if len(l.members()) != 1 {
			t.Fatalf("%d members", len(l.members()))
		}
		l.apply([]*clientv3.Event{event("put", "k", bad)})
		if len(l.members()) != 0 {
			t.Errorf("value %q is a member", bad)
		}
	}
	l.apply([]*clientv3.Event{event("put", "k", good), event("delete", "k", ""),
		event("delete", "other", "")})
	if len(l.members()) != 0 {
		t.Error("a deleted member stays")
	}
}

func TestConfig_SaysWhatIsWrong(t *testing.T) {
	good := Config{Client: clientv3.Config{Endpoints: []string{"localhost:2379"}}}
	if err := good.validate(); err != nil {
		t.Errorf("the least configuration: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"Client.Endpoints": func(c *Config) { c.Client.Endpoints = nil },
		`Base ("/x/")`:     func(c *Config) { c.Base = "/x/" },
		"TTL (1s)":         func(c *Config) { c.TTL = time.Second },
		"TTL (2.5s)":       func(c *Config) { c.TTL = 2500 * time.Millisecond },
		"TTL (1h0m0s)":     func(c *Config) { c.TTL = time.Hour },
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
	self := roster.Self{Cluster: "a/b"}
	if _, err := open(good.withDefaults(), self); !errors.Is(err, errInvalid) ||
		!strings.Contains(err.Error(), `"a/b"`) {
		t.Errorf("cluster name with a slash: %v", err)
	}
}

// Any key below the prefix yields a member that can be listed, or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","address":"h","port":1,"kinds":["role.x"]}`))
	f.Add([]byte(`{"id":"a","host":"h","port":-1}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		m, err := decode(&mvccpb.KeyValue{Key: []byte("k"), Value: value})
		if err == nil && (m.ID == "" || m.Host == "" || m.Port < 1 || m.Port > 65535) {
			t.Errorf("%q is member %+v", value, m)
		}
	})
}
