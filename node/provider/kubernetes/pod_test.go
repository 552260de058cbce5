package kubernetes

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// running returns a member's pod as reported by its kubelet.
func running() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			labelCluster: "shop", labelPort: "4020", labelID: "a", labelKind + "role.x": "true",
			labelKind + "no": "false", "app": "shop",
		}},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}, {Name: "sidecar"}}},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: "10.0.0.5",
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue},
				{Type: v1.ContainersReady, Status: v1.ConditionTrue}},
			ContainerStatuses: []v1.ContainerStatus{
				{Name: "main", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
				{Name: "sidecar", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
			},
		},
	}
}

func TestMember_OfAPod(t *testing.T) {
	m, ok := member(running())
	want := roster.Member{ID: "a", Host: "10.0.0.5", Port: 4020, Kinds: []string{"role.x"},
		Order: metav1.Time{}.UnixNano()}
	if !ok || !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, %v", m, ok)
	}
	ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, c := range map[string]struct {
		change func(*v1.Pod)
		lives  bool
	}{
		"not ready, as its kubelet says": {func(p *v1.Pod) {
			p.Status.Conditions[0].Status, p.Status.Conditions[1].Status = v1.ConditionFalse,
				v1.ConditionFalse
		}, true},
		"node lost": {func(p *v1.Pod) { p.Status.Conditions[0].Status = v1.ConditionFalse }, false},
		"readiness gate not ready": {func(p *v1.Pod) {
			p.Status.Conditions[0].Status = v1.ConditionFalse
			p.Spec.ReadinessGates = make([]v1.PodReadinessGate, 1)
		}, true},
		"no status yet": {func(p *v1.Pod) {
			p.Status.ContainerStatuses, p.Status.Conditions = nil, nil
		}, true},
		"container ended": {func(p *v1.Pod) { p.Status.ContainerStatuses[0].State = ended }, false},
		"container waits": {func(p *v1.Pod) {
			p.Status.ContainerStatuses[0].State = waiting
		}, false},
		"sidecar ended": {func(p *v1.Pod) { p.Status.ContainerStatuses[1].State = ended }, true},
		"annotated container ended": {func(p *v1.Pod) {
			p.Annotations = map[string]string{mainContainer: "sidecar"}
			p.Status.ContainerStatuses[1].State = ended
		}, false},
		"failed":     {func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, false},
		"no address": {func(p *v1.Pod) { p.Status.PodIP = "" }, false},
		"no id":      {func(p *v1.Pod) { delete(p.Labels, labelID) }, false},
		"bad port":   {func(p *v1.Pod) { p.Labels[labelPort] = "65536" }, false},
	} {
		p := running()
		c.change(p)
		if _, lives := member(p); lives != c.lives {
			t.Errorf("%s: lives is %v", name, lives)
		}
	}
}

// Labels of a dead process are replaced; foreign labels stay.
func TestStale(t *testing.T) {
	self := roster.Self{Member: roster.Member{ID: "new", Port: 1, Kinds: []string{"role.y"}},
		Cluster: "shop"}
	if got := stale(running().Labels, labels(self)); !slices.Equal(got,
		[]string{labelKind + "no", labelKind + "role.x"}) {
		t.Errorf("stale at the start: %q", got)
	}
	if got := stale(running().Labels, nil); len(got) != 5 || slices.Contains(got, "app") {
		t.Errorf("stale at the end: %q", got)
	}
}

func TestLabels_MustBeLegal(t *testing.T) {
	good := roster.Self{Member: roster.Member{Kinds: []string{"role." + strings.Repeat("x", 53)}},
		Cluster: "shop"}
	if err := checkLabels(good); err != nil {
		t.Error(err)
	}
	bad := roster.Self{Member: roster.Member{
		Kinds: []string{"role/x", "role." + strings.Repeat("x", 54)}}, Cluster: "shöp"}
	err := checkLabels(bad)
	for _, want := range []string{`"shöp"`, `"role/x"`, "63"} {
		if !errors.Is(err, errInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestConfig_SaysWhatIsMissing(t *testing.T) {
	t.Setenv("POD_NAME", "shop-0")
	t.Setenv("POD_NAMESPACE", "Shops")
	_, err := New(Config{})()
	for _, want := range []string{"Client is not set", `Namespace ("Shops")`} {
		if !errors.Is(err, errInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	t.Setenv("POD_NAMESPACE", "shops")
	c, err := Config{Client: &rest.Config{}}.withDefaults()
	if err != nil || c.Namespace != "shops" || c.Pod != "shop-0" {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := (Config{Pod: "Shop_0"}).validate(); !errors.Is(err, errInvalid) ||
		!strings.Contains(err.Error(), `"Shop_0"`) {
		t.Errorf("pod name: %v", err)
	}
}
