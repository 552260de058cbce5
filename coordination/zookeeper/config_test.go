package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/zookeeper"
)

func TestConfig_SaysWhatIsWrong(t *testing.T) {
	good := zookeeper.Config{Servers: []string{"localhost:2181"}}
	if err := zookeeper.Validate(good); err != nil {
		t.Errorf("the least configuration: %v", err)
	}
	for want, change := range map[string]func(*zookeeper.Config){
		"Servers is empty":       func(c *zookeeper.Config) { c.Servers = nil },
		`"zk1" is not host:port`: func(c *zookeeper.Config) { c.Servers = []string{"zk1"} },
		"Path of 1025 bytes": func(c *zookeeper.Config) {
			c.Path = "/" + strings.Repeat("x", 1024)
		},
		`Path "leases"`:  func(c *zookeeper.Config) { c.Path = "leases" },
		`Path "/a/"`:     func(c *zookeeper.Config) { c.Path = "/a/" },
		`Path "/a/../b"`: func(c *zookeeper.Config) { c.Path = "/a/../b" },
		"SessionTimeout (1ms)": func(c *zookeeper.Config) {
			c.SessionTimeout = time.Millisecond
		},
		"SessionTimeout (1000h0m": func(c *zookeeper.Config) {
			c.SessionTimeout = 1000 * time.Hour
		},
		"Auth belong together":     func(c *zookeeper.Config) { c.AuthScheme = "digest" },
		"AuthScheme and Auth belo": func(c *zookeeper.Config) { c.Auth = "user:password" },
	} {
		c := good
		change(&c)
		if err := zookeeper.Validate(c); !errors.Is(err, coordination.ErrInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := zookeeper.Open(t.Context(), c); !errors.Is(err, coordination.ErrInvalid) {
			t.Errorf("opened: %v", err)
		}
	}
	two := zookeeper.Config{Path: "x"}
	if err := zookeeper.Validate(two); err == nil || !strings.Contains(err.Error(), "Servers") ||
		!strings.Contains(err.Error(), "Path") {
		t.Errorf("not all problems at once: %v", err)
	}
}
