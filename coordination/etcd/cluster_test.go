//go:build stores

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/testkit/leasetest"
)

// cluster is an etcd cluster of three members for one test.
type cluster struct {
	t       testing.TB
	dir     string
	peers   string // for --initial-cluster
	members []*member
	flags   []string // of every member
}

type member struct {
	name, client, peer string
	cmd                *exec.Cmd
}

func startCluster(t testing.TB) *cluster { return startMembers(t, 3) }

func startMembers(t testing.TB, n int, flags ...string) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), members: make([]*member, n), flags: flags}
	var peers, addresses []string
	for _, port := range ports.Free(t, 2*len(c.members)) {
		addresses = append(addresses, fmt.Sprint("127.0.0.1:", port))
	}
	for i := range c.members {
		m := &member{name: fmt.Sprint("m", i), client: addresses[2*i], peer: addresses[2*i+1]}
		c.members[i] = m
		peers = append(peers, m.name+"=http://"+m.peer)
	}
	c.peers = strings.Join(peers, ",")
	for _, m := range c.members {
		if err := c.start(m, "new"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.kill)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.leader(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) start(m *member, state string) error {
	bin := os.Getenv("CONCORD_ETCD_BIN")
	if bin == "" {
		return errors.New("CONCORD_ETCD_BIN names no program: run make stores")
	}
	log, err := os.OpenFile(filepath.Join(c.dir, m.name+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd = exec.Command(bin, append(slices.Clone(c.flags), "--name", m.name,
		"--data-dir", filepath.Join(c.dir, m.name),
		"--listen-client-urls", "http://"+m.client, "--advertise-client-urls", "http://"+m.client,
		"--listen-peer-urls", "http://"+m.peer, "--initial-advertise-peer-urls", "http://"+m.peer,
		"--initial-cluster", c.peers, "--initial-cluster-state", state, "--log-level",
		"error")...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	return m.cmd.Start()
}

func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

func (c *cluster) endpoints() (out []string) {
	for _, m := range c.members {
		out = append(out, m.client)
	}
	return out
}

// leader waits until there is a leader.
func (c *cluster) leader(ctx context.Context) (*member, error) {
	for ctx.Err() == nil {
		for _, m := range c.members {
			if c.leads(ctx, m) {
				return m, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("no leader: %w", ctx.Err())
}

func (c *cluster) leads(ctx context.Context, m *member) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.client}, Logger: quiet})
	if err != nil {
		return false
	}
	defer client.Close()
	s, err := client.Status(ctx, m.client)
	return err == nil && s.Leader == s.Header.MemberId
}

// disturb kills the leader, lets the others elect another, and starts it again.
func (c *cluster) disturb(ctx context.Context) {
	wait(ctx, 2*time.Second)
	if ctx.Err() != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	m, err := c.leader(within)
	if err != nil {
		return
	}
	m.kill()
	wait(ctx, 3*time.Second)
	if err := c.start(m, "existing"); err != nil {
		c.t.Errorf("%v", err)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestLive_LeaderIsKilled runs all of Live on three members, whose leader is killed repeatedly
// during the histories.
func TestLive_LeaderIsKilled(t *testing.T) {
	c := startCluster(t)
	leasetest.Live(t, func(t *testing.T) leasestore.Store {
		return open(t, connect(t, c.endpoints()), "live/"+t.Name()+"/")
	}, leasetest.LiveOptions{Disturb: c.disturb, For: 25 * time.Second})
}

// TestLeaderKilled_HolderAndTokenSurvive kills the leader under a holder with a TTL that outlasts
// the election.
func TestLeaderKilled_HolderAndTokenSurvive(t *testing.T) {
	c := startCluster(t)
	cfg := coordination.Config{TTL: 30 * time.Second, RenewInterval: time.Second,
		OperationTimeout: time.Second, RetryInterval: 500 * time.Millisecond}
	open := func() *coordination.Session {
		s, err := coordination.Open(open(t, connect(t, c.endpoints()), "survive/"), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	}
	a, b := open(), open()
	g, err := a.Lease("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := c.leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		m.kill()
		next, err := c.leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next == m {
			t.Fatal("a dead leader answers")
		}
		// Wait until the lease is renewed.
		for left := g.Remaining(); g.Remaining() <= left; time.Sleep(50 * time.Millisecond) {
			left = g.Remaining()
			if err := g.Check(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("renewed %v after the leader was killed", time.Since(killed).Round(
			10*time.Millisecond))
		if _, err := b.Lease("x").TryAcquire(t.Context()); errors.Is(err, nil) {
			t.Fatal("two holders")
		}
		if err := c.start(m, "existing"); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := b.Lease("x").Acquire(t.Context())
	if err != nil || next.Token() <= g.Token() {
		t.Fatalf("%v after %v, %v", next, g, err)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
