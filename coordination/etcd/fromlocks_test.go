package etcd_test

import (
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/concord-go/concord/coordination/etcd"
)

// besideLease is shown in docs/from-etcd-locks.md, and compiled here.
var _ = besideLease

func besideLease(session *concurrency.Session, store etcd.Store) *concurrency.Mutex {
	mutex := concurrency.NewMutex(session, store.LockName("report"))
	return mutex
}
