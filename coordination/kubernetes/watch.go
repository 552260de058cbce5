package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"iter"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/concord-go/concord/coordination/leasestore"
)

// Watch implements leasestore.Watcher. The server ends a watch after some minutes, which Watch
// yields as an error.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		w, rec, err := s.watch(ctx, name)
		if !yield(rec, err) || err != nil {
			if err == nil {
				w.Stop()
			}
			return
		}
		defer w.Stop()
		for {
			select {
			case e, open := <-w.ResultChan():
				if rec, err = told(name, e, open); ctx.Err() != nil {
					return
				}
				if !yield(rec, err) || err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// watch starts a watch from the state that it returns.
func (s *store) watch(ctx context.Context,
	name string) (watch.Interface, leasestore.Record, error) {
	object, err := objectName(name)
	if err != nil {
		return nil, leasestore.Record{}, err
	}
	options := only(object)
	list, err := s.watching.List(ctx, options)
	if err != nil {
		return nil, leasestore.Record{}, fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	var rec leasestore.Record
	if len(list.Items) > 0 {
		if rec, _, err = read(name, &list.Items[0]); err != nil {
			return nil, rec, err
		}
	}
	options.ResourceVersion = list.ResourceVersion
	w, err := s.watching.Watch(ctx, options)
	if err != nil {
		return nil, rec, fmt.Errorf("kubernetes: lease %.80q: %w", name, err)
	}
	return w, rec, nil
}

// told returns the record that an event reports.
func told(name string, e watch.Event, open bool) (leasestore.Record, error) {
	switch lease, ok := e.Object.(*v1.Lease); {
	case !open:
		return leasestore.Record{}, errors.New("kubernetes: the watch has ended")
	case e.Type == watch.Error || !ok:
		return leasestore.Record{}, fmt.Errorf("kubernetes: watch: %w",
			apierrors.FromObject(e.Object))
	case e.Type == watch.Deleted:
		return leasestore.Record{}, nil
	default:
		rec, _, err := read(name, lease)
		return rec, err
	}
}
