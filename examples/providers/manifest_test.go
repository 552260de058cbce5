package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/node"
)

// object decodes the object of a kind from a manifest. A field that the kind does not have fails.
func object[T any](t *testing.T, file, kind string) (o T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(part, &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Kind == kind {
			if err := yaml.UnmarshalStrict(part, &o); err != nil {
				t.Errorf("%s: %s: %v", file, kind, err)
			}
			return o
		}
	}
	t.Fatalf("%s has no %s", file, kind)
	return o
}

// The manifests fit together, and to the program.
func TestManifests_FitTheProgram(t *testing.T) {
	deployment := object[appsv1.Deployment](t, "kubernetes.yaml", "Deployment")
	pod := deployment.Spec.Template.Spec
	account := object[corev1.ServiceAccount](t, "../kubernetes/rbac.yaml", "ServiceAccount")
	if pod.ServiceAccountName != account.Name || deployment.Namespace != account.Namespace {
		t.Errorf("account %q in %q, want %q in %q", pod.ServiceAccountName, deployment.Namespace,
			account.Name, account.Namespace)
	}
	binding := object[rbacv1.RoleBinding](t, "../kubernetes/provider.yaml", "RoleBinding")
	role := object[rbacv1.Role](t, "../kubernetes/provider.yaml", "Role")
	if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 ||
		binding.Subjects[0].Name != account.Name {
		t.Errorf("the account has not the rights of %s: %+v", role.Name, binding)
	}

	// The program knows the arguments; it then finds that this is no pod.
	container := pod.Containers[0]
	args := slices.Clone(container.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$(POD_IP)", "127.0.0.1")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "-secret", secret, "-port", "0", "-advertise", "", "-probes", "127.0.0.1:0")
	if err := run(t.Context(), &child.Screen{}, args); node.ExitCode(err) != 3 {
		t.Errorf("status %d: %v", node.ExitCode(err), err)
	}

	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if !slices.Contains(container.Args, "-probes=:8080") || ports["probes"] != 8080 ||
		!slices.Contains(container.Args, "-advertise=$(POD_IP):4020") || ports["remoting"] != 4020 {
		t.Errorf("ports %v, arguments %q", ports, container.Args)
	}
	for path, probe := range map[string]*corev1.Probe{"/readyz": container.ReadinessProbe,
		"/livez": container.LivenessProbe} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "probes" {
			t.Errorf("probe %+v, want %s at port probes", probe.HTTPGet, path)
		}
	}
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if stop := 10 * time.Second; grace < 2*stop { // StopTimeout
		t.Errorf("%v to stop", grace)
	}
	if r := deployment.Spec.Strategy.RollingUpdate; r.MaxSurge.IntValue() != 1 ||
		r.MaxUnavailable.IntValue() != 0 {
		t.Errorf("rolling update %+v", r)
	}
	budget := object[policyv1.PodDisruptionBudget](t, "kubernetes.yaml", "PodDisruptionBudget").Spec
	if budget.MaxUnavailable.IntValue() != 1 ||
		budget.Selector.MatchLabels["app"] != deployment.Spec.Template.Labels["app"] {
		t.Errorf("disruption budget %+v", budget)
	}
}

// The pods of the StatefulSet wait before they stop, and have the time for it.
func TestRollout_FitsItsProbesAndTimes(t *testing.T) {
	const file = "../kubernetes/rollout.yaml"
	set := object[appsv1.StatefulSet](t, file, "StatefulSet")
	pod := set.Spec.Template.Spec
	stop := pod.Containers[0].Lifecycle.PreStop.Exec.Command
	if !slices.Equal(stop, []string{"concordctl", "rollout", "-at", "127.0.0.1:7070", "-within",
		"60s"}) {
		t.Errorf("preStop is %q", stop)
	}
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if grace < time.Minute+2*10*time.Second {
		t.Errorf("%v to wait and to stop", grace)
	}
	service := object[corev1.Service](t, file, "Service")
	budget := object[policyv1.PodDisruptionBudget](t, file, "PodDisruptionBudget").Spec
	if service.Name != set.Spec.ServiceName || !service.Spec.PublishNotReadyAddresses ||
		budget.MaxUnavailable.IntValue() != 1 ||
		budget.Selector.MatchLabels["app"] != set.Spec.Template.Labels["app"] {
		t.Errorf("service %+v, disruption budget %+v", service, budget)
	}
}
