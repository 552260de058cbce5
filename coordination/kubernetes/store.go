package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/silence"
)

// Config is the configuration of a store.
type Config struct {
	// Namespace of the Lease objects. Required by New; InCluster has a default.
	Namespace string `yaml:"namespace"`
	// Exclusive says that only sessions of this module use the leases of this store. A session then
	// renews one object for all its leases instead of each lease's own, and leases may be held
	// forever. Such an object shows the largest possible leaseDurationSeconds, so that leader
	// election of client-go, if it is tried on the object nevertheless, leaves it alone; after the
	// holder has died, client-go waits until a session of this module takes over. Sessions with and
	// without Exclusive exclude each other.
	Exclusive bool `yaml:"exclusive"`
}

// validate checks a configuration for New. The error is coordination.ErrInvalid.
func (c Config) validate() error {
	if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		return fmt.Errorf("kubernetes: %w: Namespace %.80q: %s", coordination.ErrInvalid,
			c.Namespace, strings.Join(problems, ", "))
	}
	return nil
}

// Store keeps leases in Lease objects of one namespace. It may be used by many goroutines and
// sessions. Use New. It holds nothing that must be closed.
type Store interface {
	leasestore.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.Documents
}

type store struct {
	leases    clientv1.LeaseInterface
	renewing  clientv1.LeaseInterface // see urgent
	watching  clientv1.LeaseInterface // to begin watches, which have no deadline
	exclusive bool
	links     *silence.Links // or nil
}

// New returns a store on a client, such as the result of clientv1.NewForConfig or of a clientset's
// CoordinationV1 method.
func New(client clientv1.LeasesGetter, c Config) (Store, error) {
	s, err := newStore(client, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(client clientv1.LeasesGetter, c Config) (*store, error) {
	if client == nil {
		return nil, fmt.Errorf("kubernetes: %w: client is nil", coordination.ErrInvalid)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &store{client.Leases(c.Namespace), withOwnLimit(client, c.Namespace),
		withOwnLimit(client, c.Namespace), c.Exclusive, nil}, nil
}

// Load implements leasestore.Store.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	object, err := objectName(name)
	if err != nil {
		return leasestore.Record{}, "", err
	}
	defer s.links.Watch(ctx)()
	lease, err := s.of(name, leasestore.Record{}).Get(ctx, object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.absent(ctx, name, object)
	}
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	return read(name, lease)
}

// absent returns the lower bound of tokens for a name without an object: a list that does not
// contain the object has a resourceVersion above those of all earlier writes, and each tenure had a
// write of its own.
func (s *store) absent(ctx context.Context, name,
	object string) (leasestore.Record, leasestore.Version, error) {
	list, err := s.of(name, leasestore.Record{}).List(ctx, only(object))
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	if len(list.Items) > 0 {
		return read(name, &list.Items[0])
	}
	floor, err := number(list.ResourceVersion)
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	return leasestore.Record{Token: floor}, "", nil
}

func only(object string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + object}
}

// Swap implements leasestore.Store. It patches an existing object, with its resourceVersion as a
// condition, so that fields that others have added stay.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	object, err := objectName(name)
	if err != nil {
		return "", err
	}
	defer s.links.Watch(ctx)()
	ctx, repeated := counted(ctx)
	var written *v1.Lease
	if old == "" {
		lease := &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: object,
			Annotations: newAnnotations(name, next)}, Spec: spec(next, seen{}, time.Now())}
		written, err = s.of(name, next).Create(ctx, lease, metav1.CreateOptions{})
	} else {
		before, ok := parse(old)
		if !ok {
			return "", leasestore.ErrConflict
		}
		written, err = change(ctx, s.of(name, next), object,
			patch(name, before, next, time.Now()))
	}
	if err != nil {
		return "", outcome(err, repeated())
	}
	_, version, err := read(name, written)
	return version, err
}

// change patches an existing object. If the object is missing, it returns ErrConflict.
func change(ctx context.Context, leases clientv1.LeaseInterface, object string,
	patch any) (*v1.Lease, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	written, err := leases.Patch(ctx, object, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil, leasestore.ErrConflict
	}
	return written, err
}

// KeepsSessions implements leasestore.SessionKeeper. It returns Config.Exclusive.
func (s *store) KeepsSessions() bool { return s.exclusive }

// Remove implements leasestore.Remover.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	object, err := objectName(name)
	if err != nil {
		return err
	}
	before, ok := parse(old)
	if !ok {
		return leasestore.ErrConflict
	}
	err = s.leases.Delete(ctx, object,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			ResourceVersion: &before.resourceVersion}})
	if apierrors.IsNotFound(err) {
		return leasestore.ErrConflict
	}
	return outcome(err, false)
}

// counted returns a context that counts the HTTP requests made with it, and a function that reports
// whether there was more than one: client-go repeats a request by itself after some errors.
func counted(ctx context.Context) (_ context.Context, repeated func() bool) {
	var requests atomic.Int32
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { requests.Add(1) },
	}), func() bool { return requests.Load() > 1 }
}

// outcome classifies an error: ErrConflict or ErrRefused if certainly nothing was written. The
// answer to a repeated request does not show whether the server has executed the first.
func outcome(err error, repeated bool) error {
	switch {
	case err == nil:
		return nil
	case repeated:
		return fmt.Errorf("kubernetes: answer to a repeated request: %v", err) //nolint:errorlint // no conflict
	}
	if errors.Is(err, leasestore.ErrConflict) || apierrors.IsConflict(err) ||
		apierrors.IsAlreadyExists(err) {
		return leasestore.ErrConflict
	}
	var status apierrors.APIStatus // does not implement error, so AsType cannot find it
	if errors.As(err, &status) {
		switch status.Status().Code {
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
			http.StatusNotFound, http.StatusMethodNotAllowed,
			http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
			http.StatusTooManyRequests:
			return fmt.Errorf("%w: kubernetes: %w", leasestore.ErrRefused, err)
		}
	}
	return fmt.Errorf("kubernetes: %w", err)
}
