package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/concord-go/concord/coordination"
)

// Config of a store.
type Config struct {
	// Namespace of the Lease objects. Required by New; InCluster has a default.
	Namespace string `yaml:"namespace"`
	// Exclusive says that only sessions of this module want the leases of this store. A session then renews one
	// object for all its leases instead of each lease's own, and leases may be held for ever. Such an object shows the
	// largest leaseDurationSeconds there is, so that leader election of client-go, should it be tried on it all the
	// same, leaves it alone; it then waits until a session of this module takes over from a holder that has died.
	// Sessions with and without Exclusive exclude each other.
	Exclusive bool `yaml:"exclusive"`
}

// Validate returns what is wrong for New, as coordination.ErrInvalid.
func (c Config) Validate() error {
	if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		return fmt.Errorf("kubernetes: %w: Namespace %.80q: %s", coordination.ErrInvalid, c.Namespace, strings.Join(problems, ", "))
	}
	return nil
}

// Store keeps leases in Lease objects of one namespace. It may be used by many goroutines and sessions.
// Use New. It holds nothing that would have to be closed.
type Store struct {
	leases    clientv1.LeaseInterface
	exclusive bool
}

var (
	_ coordination.Store         = (*Store)(nil)
	_ coordination.Watcher       = (*Store)(nil)
	_ coordination.SessionKeeper = (*Store)(nil)
	_ coordination.Remover       = (*Store)(nil)
	_ coordination.Queuer        = (*Store)(nil)
	_ coordination.Documents     = (*Store)(nil)
)

// New returns a store on a client, as clientv1.NewForConfig or the CoordinationV1 method of a clientset
// gives it.
func New(client clientv1.LeasesGetter, c Config) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("kubernetes: %w: client is nil", coordination.ErrInvalid)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Store{client.Leases(c.Namespace), c.Exclusive}, nil
}

// Load implements coordination.Store.
func (s *Store) Load(ctx context.Context, name string) (coordination.Record, coordination.Version, error) {
	object, err := objectName(name)
	if err != nil {
		return coordination.Record{}, "", err
	}
	lease, err := s.leases.Get(ctx, object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.absent(ctx, name, object)
	}
	if err != nil {
		return coordination.Record{}, "", fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	return read(name, lease)
}

// absent tells the token floor of a name without an object: a list that does not show it has a
// resourceVersion above those of all writes before, and each tenure had a write of its own.
func (s *Store) absent(ctx context.Context, name, object string) (coordination.Record, coordination.Version, error) {
	list, err := s.leases.List(ctx, only(object))
	if err != nil {
		return coordination.Record{}, "", fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	if len(list.Items) > 0 {
		return read(name, &list.Items[0])
	}
	floor, err := number(list.ResourceVersion)
	if err != nil {
		return coordination.Record{}, "", fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	return coordination.Record{Token: floor}, "", nil
}

func only(object string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + object}
}

// Swap implements coordination.Store. An existing object is patched, with its resourceVersion as a
// condition, so that what others have added to it stays.
func (s *Store) Swap(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	object, err := objectName(name)
	if err != nil {
		return "", err
	}
	var written *v1.Lease
	if old == "" {
		lease := &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: object, Annotations: newAnnotations(name, next)}, Spec: spec(next, seen{}, time.Now())}
		written, err = s.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		before, ok := parse(old)
		if !ok {
			return "", coordination.ErrConflict
		}
		written, err = s.change(ctx, object, patch(name, before, next, time.Now()))
	}
	if err != nil {
		return "", outcome(err)
	}
	_, version, err := read(name, written)
	return version, err
}

// change patches an object that was there: if it is not, it has changed.
func (s *Store) change(ctx context.Context, object string, patch any) (*v1.Lease, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	written, err := s.leases.Patch(ctx, object, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil, coordination.ErrConflict
	}
	return written, err
}

// KeepsSessions implements coordination.SessionKeeper: as Config.Exclusive says.
func (s *Store) KeepsSessions() bool { return s.exclusive }

// Remove implements coordination.Remover.
func (s *Store) Remove(ctx context.Context, name string, old coordination.Version) error {
	object, err := objectName(name)
	if err != nil {
		return err
	}
	before, ok := parse(old)
	if !ok {
		return coordination.ErrConflict
	}
	err = s.leases.Delete(ctx, object, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &before.resourceVersion}})
	if apierrors.IsNotFound(err) {
		return coordination.ErrConflict
	}
	return outcome(err)
}

// outcome tells errors that say that nothing was written from those that do not. A write that client-go
// has repeated by itself may come back as a conflict with its own first try: a session reads then, and
// finds its own record.
func outcome(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, coordination.ErrConflict) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return coordination.ErrConflict
	}
	var status apierrors.APIStatus // is no error, so AsType cannot find it
	if errors.As(err, &status) {
		switch status.Status().Code {
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
			http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
			return fmt.Errorf("%w: kubernetes: %w", coordination.ErrRefused, err)
		}
	}
	return fmt.Errorf("kubernetes: %w", err)
}
