package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/internal/silence"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// directory consists of the keys of one cluster.
type directory struct {
	cfg    Config
	client *clientv3.Client
	prefix string // ends with "/", so that it is not a prefix of another cluster's keys
}

func open(c Config, self roster.Self) (roster.Directory, error) {
	if strings.Contains(self.Cluster, "/") {
		return nil, fmt.Errorf("%w: cluster name (%.80q) must have no \"/\"", errInvalid,
			self.Cluster)
	}
	client, err := clientv3.New(c.Client)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return &directory{cfg: c, client: client, prefix: c.Base + "/" + self.Cluster + "/"}, nil
}

// Where implements roster.Directory.
func (d *directory) Where() string { return "etcd at " + strings.Join(d.cfg.Client.Endpoints, ",") }

// id returns the member id in the form of Proto.Actor's provider. It is new in each incarnation,
// because the id of the actor system is.
func id(self roster.Self) string { return self.Cluster + "@" + self.ID }

func (d *directory) key(self roster.Self) string { return d.prefix + id(self) }

// Serve implements roster.Directory. A session is an etcd lease: it ends if etcd has not renewed it
// for the TTL.
func (d *directory) Serve(ctx context.Context, self roster.Self,
	report func([]roster.Member)) error {
	ctx, cancel := context.WithCancel(ctx)
	asked := time.Now()
	lease, err := d.register(ctx, self)
	if err != nil {
		cancel()
		return fmt.Errorf("listing this member: %w", err)
	}
	lost := make(chan error, 1)
	var keeping sync.WaitGroup
	keeping.Go(func() { lost <- d.keep(ctx, lease, asked) })
	defer keeping.Wait()
	defer cancel()
	known := listing{log: self.Log, by: map[string]roster.Member{}}
	revision, err := d.load(ctx, &known)
	if err != nil {
		return fmt.Errorf("listing members: %w", err)
	}
	report(known.members())
	changes := d.client.Watch(ctx, d.prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	return d.watch(ctx, &known, lost, changes, report)
}

// errPaused ends a session. Keys of other members may have expired during the pause because those
// members were paused too, and so may the key of this member.
var errPaused = errors.New("this process was paused")

// watch reports changes until the session is lost or ctx ends.
func (d *directory) watch(ctx context.Context, known *listing,
	lost <-chan error, changes clientv3.WatchChan, report func([]roster.Member),
) error {
	look := time.NewTicker(d.cfg.TTL / lookPart)
	defer look.Stop()
	for looked := time.Now(); ; {
		var r clientv3.WatchResponse
		ok := true
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		case err := <-lost:
			return err
		case r, ok = <-changes:
		}
		before := looked
		looked = time.Now()
		switch {
		case ctx.Err() != nil:
			return nil
		case looked.Sub(before) > d.cfg.TTL/2:
			return errPaused
		case !ok:
			return errors.New("watch ended")
		case r.Err() != nil:
			return fmt.Errorf("watch: %w", r.Err())
		case len(r.Events) > 0:
			known.apply(r.Events)
			report(known.members())
		}
	}
}

// keep keeps the etcd lease of this member alive until it has expired or ctx ends. It had the whole
// TTL when it was asked for. The client's own KeepAlive sends on one stream: if that falls silent,
// it notices too late.
func (d *directory) keep(ctx context.Context, lease clientv3.LeaseID, asked time.Time) error {
	pause := time.NewTicker(d.cfg.TTL / keepPart)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		begun := time.Now()
		until, cancel := context.WithDeadline(ctx, asked.Add(d.cfg.TTL))
		_, err := d.client.KeepAliveOnce(silence.Patiently(until, d.cfg.TTL, d.cfg.TTL), lease)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			asked = begun
		case errors.Is(err, rpctypes.ErrLeaseNotFound) || time.Since(asked) >= d.cfg.TTL:
			return fmt.Errorf("the lease of this member has expired: %w", err)
		}
	}
}

// register puts this member's key on a new lease. The lease of an earlier session expires without a
// key.
func (d *directory) register(ctx context.Context, self roster.Self) (clientv3.LeaseID, error) {
	m := self.Member
	m.ID = id(self)
	value, err := encode(m)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	lease, err := d.client.Grant(ctx, int64(d.cfg.TTL/time.Second))
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, fmt.Errorf("no answer after %v: %w", callTimeout, err)
	}
	if err != nil {
		return 0, err
	}
	_, err = d.client.Put(ctx, d.key(self), value, clientv3.WithLease(lease.ID))
	return lease.ID, err
}

// load reads all members, and returns the revision at which it read them.
func (d *directory) load(ctx context.Context, into *listing) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := d.client.Get(ctx, d.prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	for _, kv := range got.Kvs {
		into.put(kv)
	}
	return got.Header.Revision, nil
}

// Leave implements roster.Directory.
func (d *directory) Leave(ctx context.Context, self roster.Self) error {
	_, err := d.client.Delete(ctx, d.key(self))
	return err
}

// Close implements roster.Directory.
func (d *directory) Close() error {
	err := d.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil // the client's own context was canceled
	}
	return err
}
