//go:build stores

package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if path, is := takeover.Place(); is {
		fmt.Fprintln(os.Stderr, holdAll(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
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

func servers(t testing.TB) []string { return strings.Split(env(t, "CONCORD_ZOOKEEPER"), ",") }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh returns a different path for each test, so that tests share nothing.
func fresh() string { return "/test/" + strings.ToLower(rand.Text()) }

// long is a session timeout above 4/3 of all TTLs of the suite.
const long = 33 * time.Hour

func open(t testing.TB, cfg zookeeper.Config) zookeeper.Store {
	t.Helper()
	if len(cfg.Servers) == 0 {
		cfg.Servers = servers(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := zookeeper.Open(ctx, cfg)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// client returns a client of ZooKeeper.
func client(t testing.TB) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect(servers(t), 40*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		for range events { // until it has stopped
		}
	})
	return c
}

// deleteAll removes a node with its children, as of now: the server of c may lag behind. Meanwhile
// the store or the server may also remove empty nodes.
func deleteAll(c *zk.Conn, path string) error {
	for begun := false; ; begun = true {
		if _, err := c.Sync(path); err != nil {
			return err
		}
		children, _, err := c.Children(path)
		if begun && errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range children {
			if err := c.Delete(path+"/"+name, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
		switch err := c.Delete(path, -1); {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case !errors.Is(err, zk.ErrNotEmpty):
			return err
		}
	}
}

func TestConformance(t *testing.T) {
	operator := client(t)
	paths := sync.Map{} // of the stores
	begin := func(t *testing.T, path string) leasestore.Store {
		s := open(t, zookeeper.Config{Path: path, SessionTimeout: long})
		paths.Store(s, path)
		return s
	}
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		return begin(t, fresh())
	}, leasetest.Options{
		Outside: true, TokensJump: true,
		Reopen: func(t *testing.T, s leasestore.Store) (leasestore.Store, error) {
			p, _ := paths.Load(s)
			return begin(t, p.(string)), nil
		},
		Delete: func(s leasestore.Store, name string) error {
			return shown(s, deleteAll(operator, s.(zookeeper.Store).LockPath(name)))
		},
		Damage: func(s leasestore.Store, name string) error {
			_, err := operator.Set(s.(zookeeper.Store).LockPath(name), []byte("hello"), -1)
			return shown(s, err)
		},
	})
}

// shown returns when the server of a store has applied what an operator has done through another.
func shown(s leasestore.Store, err error) error {
	if err == nil {
		_, _, err = s.(zookeeper.Store).LoadDocument(context.Background(), "none")
	}
	return err
}

// TestLoadDocument_IsATransaction: a leader answers a sync without waiting for anything, although
// another server may have confirmed a write that it has not applied, or it was replaced.
func TestLoadDocument_IsATransaction(t *testing.T) {
	operator, path := client(t), fresh()
	s := open(t, zookeeper.Config{Path: path})
	_, err := s.SwapDocument(t.Context(), "document", "", []byte("text"))
	must(t, err)
	created := func(name string) int64 {
		_, err := operator.Create(path+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, stat, err := operator.Exists(path + "/" + name)
		must(t, err)
		return stat.Czxid
	}
	before := created("before")
	_, _, err = s.LoadDocument(t.Context(), "document")
	must(t, err)
	if after := created("after"); after == before+1 {
		t.Errorf("transaction %x follows %x", after, before)
	}
}

// TestLive kills the leader of three servers now and then. If TTLs are short, the ZooKeeper
// sessions are short too.
func TestLive(t *testing.T) {
	path := fresh()
	leasetest.Live(t, func(t *testing.T) leasestore.Store {
		cfg := zookeeper.Config{Path: path + "/" + strings.ReplaceAll(t.Name(), "/", "_"),
			SessionTimeout: long}
		if strings.Contains(t.Name(), "H1_") {
			cfg.SessionTimeout = 4 * time.Second
		}
		return open(t, cfg)
	}, leasetest.LiveOptions{For: 25 * time.Second,
		Disturb: faulty.Restart(t, env(t, "CONCORD_ZOOKEEPER_RESTART"), 8*time.Second)})
}
