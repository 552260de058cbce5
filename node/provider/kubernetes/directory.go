package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// directory consists of the pods of one namespace.
type directory struct {
	cfg  Config
	web  *http.Client
	pods clientv1.PodInterface
}

// Where implements roster.Directory.
func (d *directory) Where() string {
	return fmt.Sprintf("Kubernetes API at %s, pod %s/%s", d.cfg.Client.Host, d.cfg.Namespace,
		d.cfg.Pod)
}

// Close implements roster.Directory.
func (d *directory) Close() error {
	utilnet.CloseIdleConnectionsFor(d.web.Transport)
	return nil
}

// Serve implements roster.Directory. There is no session: labels stay until they are removed. Serve
// returns an error when the API server cannot be reached.
func (d *directory) Serve(ctx context.Context, self roster.Self,
	report func([]roster.Member)) error {
	if err := d.register(ctx, self); err != nil {
		return fmt.Errorf("labelling the pod of this member: %w", err)
	}
	for ctx.Err() == nil {
		if err := d.follow(ctx, self, report); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// register sets this member's labels on its pod, and removes all other labels of the provider.
func (d *directory) register(ctx context.Context, self roster.Self) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := d.pods.Get(ctx, d.cfg.Pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if ip := pod.Status.PodIP; ip != self.Host {
		return fmt.Errorf("the member advertises %s, but its pod has address %q: others could not reach it", self.Host, ip)
	}
	ours := labels(self)
	change := map[string]*string{}
	for _, label := range stale(pod.Labels, ours) {
		change[label] = nil
	}
	for label, value := range ours {
		change[label] = &value
	}
	return d.label(ctx, change)
}

// label sets labels, and removes those whose value is nil.
func (d *directory) label(ctx context.Context, change map[string]*string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": change}})
	if err != nil {
		return err
	}
	_, err = d.pods.Patch(ctx, d.cfg.Pod, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// follow lists the members, and watches them until the API server ends the watch, which it does
// about every half hour. That is not an error.
func (d *directory) follow(ctx context.Context, self roster.Self,
	report func([]roster.Member)) error {
	selector := labelCluster + "=" + self.Cluster
	known, version, err := d.load(ctx, selector)
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	report(known.members(self))
	w, err := d.pods.Watch(ctx, metav1.ListOptions{LabelSelector: selector,
		ResourceVersion: version})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	defer w.Stop()
	begun := time.Now()
	for e := range w.ResultChan() {
		switch pod, isPod := e.Object.(*v1.Pod); {
		case e.Type == watch.Error:
			err := apierrors.FromObject(e.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return nil
			}
			return fmt.Errorf("watching pods: %w", err)
		case !isPod:
		case e.Type == watch.Deleted: // or the label was removed
			delete(known, pod.UID)
			report(known.members(self))
		default:
			known[pod.UID] = pod
			report(known.members(self))
		}
	}
	if time.Since(begun) < retry {
		return errors.New("watching pods: the watch ended at once")
	}
	return nil
}

func (d *directory) load(ctx context.Context,
	selector string) (known listing, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := d.pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, "", err
	}
	known = listing{}
	for i := range list.Items {
		known[list.Items[i].UID] = &list.Items[i]
	}
	return known, list.ResourceVersion, nil
}

// Leave implements roster.Directory. It leaves labels that belong to a later incarnation.
func (d *directory) Leave(ctx context.Context, self roster.Self) error {
	pod, err := d.pods.Get(ctx, d.cfg.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if pod.Labels[labelID] != self.ID {
		return nil
	}
	change := map[string]*string{}
	for _, label := range stale(pod.Labels, nil) {
		change[label] = nil
	}
	return d.label(ctx, change)
}

// listing holds the pods with the label of one cluster.
type listing map[types.UID]*v1.Pod

// members returns the members that are alive. This member is, whatever the kubelet has reported
// about it so far.
func (l listing) members(self roster.Self) (out []roster.Member) {
	for _, p := range l {
		if p.Labels[labelID] == self.ID {
			out = append(out, self.Member)
		} else if m, ok := member(p); ok {
			out = append(out, m)
		}
	}
	return out
}
