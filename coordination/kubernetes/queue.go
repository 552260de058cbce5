package kubernetes

import (
	"context"
	"fmt"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// The queue of a lease is an annotation of a Lease object that nobody ever holds, because the
// account has permissions on that kind.
const (
	atQueue = domain + "queue"
	queueOf = domain + "queue-of" // the name of the lease
)

// Enqueue implements leasestore.Queuer.
func (s *Store) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) (ahead []leasestore.Waiter, err error) {
	err = s.changeQueue(ctx, name, func(q *queue.Queue) { ahead = q.Enqueue(p) })
	return ahead, err
}

// Leave implements leasestore.Queuer.
func (s *Store) Leave(ctx context.Context, name string, gone []leasestore.Waiter) error {
	return s.changeQueue(ctx, name, func(q *queue.Queue) { q.Leave(gone...) })
}

func (s *Store) changeQueue(ctx context.Context, name string, change func(*queue.Queue)) error {
	if _, err := objectName(name); err != nil {
		return err
	}
	if err := queue.Change(ctx, cell{s, name}, change); err != nil {
		return fmt.Errorf("kubernetes: queue of lease %.80q: %w", name, err)
	}
	return nil
}

// cell is the object of a queue.
type cell struct {
	*Store
	name string // of the lease
}

// object returns the name of the queue's object, which no lease has.
func (c cell) object() string { return hashed + "queue-" + hashOf(c.name) }

// Read implements queue.Cell.
func (c cell) Read(ctx context.Context) (text []byte, version string, err error) {
	l, err := c.leases.Get(ctx, c.object(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case l.Annotations[queueOf] != c.name:
		return nil, "", fmt.Errorf("%w: kubernetes: Lease %s: not the queue of this lease",
			leasestore.ErrDamaged, l.Name)
	}
	return []byte(l.Annotations[atQueue]), l.ResourceVersion, nil
}

// Write implements queue.Cell.
func (c cell) Write(ctx context.Context, old string, text []byte) error {
	annotations := map[string]string{atQueue: string(text), queueOf: c.name}
	var err error
	if old == "" {
		lease := &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.object(),
			Annotations: annotations}}
		_, err = c.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = c.change(ctx, c.object(),
			map[string]any{"metadata": map[string]any{"resourceVersion": old,
				"annotations": annotations}})
	}
	return outcome(err, false)
}
