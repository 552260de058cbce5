package etcd_test

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
)

// The functions of this file are shown in docs/from-etcd-locks.md, and compiled here.
var _, _, _ = underMutex, underLease, besideLease

func underMutex(ctx context.Context, client *clientv3.Client,
	report func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		return err
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "report")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer func() { _ = mutex.Unlock(ctx) }()
	return report(ctx)
}

func underLease(ctx context.Context, client *clientv3.Client, report func(context.Context,
	*coordination.Grant) error) error {
	store, err := etcd.New(client, etcd.Config{})
	if err != nil {
		return err
	}
	session, err := coordination.Open(store, coordination.Config{}) // one per process
	if err != nil {
		return err
	}
	defer session.Close(context.Background())
	return session.Lease("report").Do(ctx, report)
}

func besideLease(session *concurrency.Session, store etcd.Store) *concurrency.Mutex {
	mutex := concurrency.NewMutex(session, store.LockName("report"))
	return mutex
}
