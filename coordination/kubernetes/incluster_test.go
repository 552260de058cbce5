package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination"
)

func TestInCluster_OutsideOfAPodSaysAllThatIsMissing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("POD_NAMESPACE", "")
	_, err := inCluster(Config{}, rest.InClusterConfig, filepath.Join(t.TempDir(), "namespace"))
	if !errors.Is(err, coordination.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	for _, said := range []string{"does this run in a pod",
		"Namespace (namespace) is not set, nor POD_NAMESPACE"} {
		if !strings.Contains(err.Error(), said) {
			t.Errorf("%q is not in:\n%v", said, err)
		}
	}
	if s, err := inPod(Config{})(); s != nil || err == nil {
		t.Errorf("a store outside of a pod: %v, %v", s, err)
	}
}

func TestInCluster_NamespaceIsTheOneSetOrOfThePod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("of-account\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := func() (*rest.Config, error) { return &rest.Config{Host: "https://127.0.0.1:1"}, nil }
	for _, test := range []struct{ set, env, want string }{
		{"", "", "of-account"}, {"", "of-pod", "of-pod"}, {"of-config", "of-pod", "of-config"},
	} {
		t.Setenv("POD_NAMESPACE", test.env)
		if got, err := namespaceOr(test.set, file); err != nil || got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
		if _, err := inCluster(Config{Namespace: test.set}, client, file); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
	t.Setenv("POD_NAMESPACE", "Not A Namespace")
	if _, err := inCluster(Config{}, client, file); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
