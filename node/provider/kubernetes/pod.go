package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// Labels, named as in Proto.Actor's provider.
const (
	labelPrefix  = "cluster.proto.actor/"
	labelPort    = labelPrefix + "port"
	labelKind    = labelPrefix + "kind-"
	labelCluster = labelPrefix + "cluster"
	labelID      = labelPrefix + "member-id"

	// mainContainer is an annotation defined by kubectl. Without it the first container counts.
	mainContainer = "kubectl.kubernetes.io/default-container"
)

func labels(self roster.Self) map[string]string {
	out := map[string]string{
		labelCluster: self.Cluster,
		labelPort:    strconv.Itoa(self.Port),
		labelID:      self.ID,
	}
	for _, k := range self.Kinds {
		out[labelKind+k] = "true"
	}
	return out
}

// checkLabels returns all problems for which the API server would reject the labels.
func checkLabels(self roster.Self) error {
	var errs []error
	if p := validation.IsValidLabelValue(self.Cluster); len(p) > 0 {
		errs = append(errs, fmt.Errorf("%w: cluster name (%.80q): %s", errInvalid, self.Cluster,
			strings.Join(p, ", ")))
	}
	for _, k := range self.Kinds {
		if p := validation.IsQualifiedName(labelKind + k); len(p) > 0 {
			errs = append(errs, fmt.Errorf("%w: kind (%.80q) in a label: %s", errInvalid, k,
				strings.Join(p, ", ")))
		}
	}
	return errors.Join(errs...)
}

// stale returns the labels of the provider that are on a pod but not in ours.
func stale(on, ours map[string]string) (out []string) {
	for label := range on {
		if _, ok := ours[label]; !ok && strings.HasPrefix(label, labelPrefix) {
			out = append(out, label)
		}
	}
	slices.Sort(out)
	return out
}

// member returns the member that runs in a pod, if there is one and it is alive.
func member(p *v1.Pod) (roster.Member, bool) {
	port, err := strconv.Atoi(p.Labels[labelPort])
	id := p.Labels[labelID]
	if err != nil || port < 1 || port > 65535 || id == "" || p.Status.PodIP == "" || !lives(p) {
		return roster.Member{}, false
	}
	m := roster.Member{ID: id, Host: p.Status.PodIP, Port: port,
		Order: p.CreationTimestamp.UnixNano()}
	for label, value := range p.Labels {
		if kind, ok := strings.CutPrefix(label, labelKind); ok && value == "true" {
			m.Kinds = append(m.Kinds, kind)
		}
	}
	slices.Sort(m.Kinds)
	return m, true
}

func lives(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodRunning && containerRuns(p) && !nodeLost(p)
}

// containerRuns reports whether the main container runs. A container without a status is starting.
func containerRuns(p *v1.Pod) bool {
	name := p.Annotations[mainContainer]
	if name == "" && len(p.Spec.Containers) > 0 {
		name = p.Spec.Containers[0].Name
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == name {
			return s.State.Terminated == nil && s.State.Waiting == nil
		}
	}
	return true
}

// nodeLost reports whether the node of a pod is lost. The kubelet sets both conditions together;
// when the control plane loses contact with the kubelet, it sets only PodReady to false. Readiness
// gates have the same effect, so a pod with readiness gates is never considered lost.
func nodeLost(p *v1.Pod) bool {
	return len(p.Spec.ReadinessGates) == 0 &&
		condition(p, v1.PodReady) == v1.ConditionFalse &&
		condition(p, v1.ContainersReady) == v1.ConditionTrue
}

func condition(p *v1.Pod, of v1.PodConditionType) v1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return v1.ConditionUnknown
}
