//go:build stores

package kubernetes_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/node/provider/kubernetes"
	"github.com/concord-go/concord/testkit/clustertest"
)

const (
	namespace = "concord"
	endpoint  = "CONCORD_PROVIDER_KUBERNETES" // where members find the API server
)

func TestMain(m *testing.M) {
	clustertest.Main(provide)
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// provide gives each member a pod of its own name, and the rights of
// examples/kubernetes/provider.yaml.
func provide(m clustertest.Member) (cluster.ClusterProvider, error) {
	client := access("https://"+os.Getenv(endpoint), os.Getenv("CONCORD_KUBERNETES_TOKEN"))
	return kubernetes.New(kubernetes.Config{Client: client, Namespace: namespace, Pod: m.Name()})()
}

func access(host, token string) *rest.Config {
	return &rest.Config{Host: host, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// env returns a variable that make stores sets. Without a server these tests fail.
func env(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is empty: run make stores", name)
	}
	return v
}

// kubelet acts as the kubelet of the members' node.
type kubelet struct{ pods clientv1.PodInterface }

func newKubelet(t testing.TB) kubelet {
	t.Helper()
	cfg := access(env(t, "CONCORD_KUBERNETES"), env(t, "CONCORD_KUBERNETES_ADMIN"))
	web, err := rest.HTTPClientFor(cfg)
	must(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(web.Transport) })
	client, err := clientv1.NewForConfigAndClient(cfg, web)
	must(t, err)
	return kubelet{client.Pods(namespace)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const container = "member"

// run creates a pod if it does not exist, and reports that its container runs.
func (k kubelet) run(t testing.TB, m clustertest.Member) {
	t.Helper()
	automount := false
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name()},
		Spec: v1.PodSpec{
			ServiceAccountName: namespace, AutomountServiceAccountToken: &automount,
			Containers: []v1.Container{{Name: container, Image: "none"}},
		},
	}
	_, err := k.pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err == nil {
		t.Cleanup(func() {
			now := int64(0)
			must(t, k.pods.Delete(context.Background(), m.Name(), metav1.DeleteOptions{
				GracePeriodSeconds: &now}))
		})
	} else if !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	k.says(t, m, v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}})
}

// killed reports that the container has terminated.
func (k kubelet) killed(t testing.TB, m clustertest.Member) {
	t.Helper()
	k.says(t, m, v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137,
		Reason: "Error"}})
}

func (k kubelet) says(t testing.TB, m clustertest.Member, state v1.ContainerState) {
	t.Helper()
	status := v1.PodStatus{
		Phase: v1.PodRunning, PodIP: m.Host, PodIPs: []v1.PodIP{{IP: m.Host}},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: container, State: state, Ready: state.Running != nil}},
	}
	body, err := json.Marshal(map[string]any{"status": status})
	must(t, err)
	_, err = k.pods.Patch(t.Context(), m.Name(), types.MergePatchType, body, metav1.PatchOptions{},
		"status")
	must(t, err)
}

func TestProvider(t *testing.T) {
	k := newKubelet(t)
	gate := clustertest.NewGate(t, host(t))
	t.Setenv(endpoint, gate.Address())
	clustertest.Run(t, clustertest.Config{
		Prepare: k.run, Killed: k.killed, Server: gate.Server(),
	})
}

func host(t testing.TB) string {
	t.Helper()
	at, err := url.Parse(env(t, "CONCORD_KUBERNETES"))
	must(t, err)
	return at.Host
}
