package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// The API server needs no cluster: an etcd, a key for tokens and two accounts are enough. The
// second account is that of examples/kubernetes/rbac.yaml. The manifest is applied, so that the
// tests run with its rights.
const (
	kubernetesVersion = "v1.36.3"
	administrator     = "administrator-of-the-tests"
	contender         = "contender-of-the-tests"
	accounts          = administrator + ",admin,admin,system:masters\n" + contender +
		",system:serviceaccount:concord:concord,concord\n"
)

func startKubernetes(ctx context.Context, e *environment) error {
	etcd, err := e.build(ctx, "etcd", "go.etcd.io/etcd/server/v3", "-ldflags=-s -w")
	if err != nil {
		return err
	}
	program, err := e.build(ctx, "kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver",
		"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion="+kubernetesVersion)
	if err != nil {
		return err
	}
	backend, err := e.startMember(ctx, etcd)
	if err != nil {
		return err
	}
	port, err := e.free()
	if err != nil {
		return err
	}
	key, tokens := filepath.Join(e.temp, "account.key"), filepath.Join(e.temp, "tokens.csv")
	if err := writeKey(key); err != nil {
		return err
	}
	if err := os.WriteFile(tokens, []byte(accounts), 0o600); err != nil {
		return err
	}
	log, restart, err := e.spawn("kube-apiserver", program, "--etcd-servers=http://"+backend,
		"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+
			filepath.Join(e.temp, "certificates"), "--service-account-issuer=https://localhost",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC", "--token-auth-file="+
			tokens)
	if err != nil {
		return err
	}
	api := api{"https://127.0.0.1:" + port, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // created at start
	}}}
	isReady := func(ctx context.Context) error {
		return ready(ctx, api.client, log, http.StatusOK,
			func(ctx context.Context) (*http.Request, error) {
				return api.request(ctx, http.MethodGet, "/readyz", nil)
			})
	}
	if err := isReady(ctx); err != nil {
		return err
	}
	if err := api.apply(ctx, filepath.Join(e.root, "examples"),
		"kubernetes/rbac.yaml", "kubernetes/provider.yaml",
		"providers/kubernetes.yaml", "kubernetes/rollout.yaml"); err != nil {
		return err
	}
	at, err := e.serve(func(ctx context.Context) error {
		return errors.Join(restart(), isReady(ctx))
	})
	if err != nil {
		return err
	}
	e.set("CONCORD_KUBERNETES", api.address)
	e.set("CONCORD_KUBERNETES_RESTART", at)
	e.set("CONCORD_KUBERNETES_ADMIN", administrator)
	e.set("CONCORD_KUBERNETES_TOKEN", contender)
	return nil
}

func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

type api struct {
	address string
	client  *http.Client
}

func (a api) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+administrator)
	r.Header.Set("Content-Type", "application/yaml")
	return r, nil
}

// apply creates the namespace and the objects in the manifests. The server refuses a field that a
// kind does not have. No controller runs, so that a deployment starts no pods.
func (a api) apply(ctx context.Context, dir string, manifests ...string) error {
	if err := a.create(ctx, "/api/v1/namespaces",
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"concord"}}`)); err != nil {
		return err
	}
	for _, manifest := range manifests {
		data, err := os.ReadFile(filepath.Join(dir, manifest))
		if err != nil {
			return err
		}
		for object := range bytes.SplitSeq(data, []byte("\n---\n")) {
			if err := a.createOne(ctx, object); err != nil {
				return fmt.Errorf("%s: %w", manifest, err)
			}
		}
	}
	return nil
}

func (a api) createOne(ctx context.Context, object []byte) error {
	for kind, path := range map[string]string{
		"ServiceAccount": "/api/v1/namespaces/concord/serviceaccounts",
		"Role":           "/apis/rbac.authorization.k8s.io/v1/namespaces/concord/roles",
		"RoleBinding":    "/apis/rbac.authorization.k8s.io/v1/namespaces/concord/rolebindings",

		"Service":             "/api/v1/namespaces/concord/services",
		"StatefulSet":         "/apis/apps/v1/namespaces/concord/statefulsets",
		"Deployment":          "/apis/apps/v1/namespaces/concord/deployments",
		"PodDisruptionBudget": "/apis/policy/v1/namespaces/concord/poddisruptionbudgets",
	} {
		if bytes.Contains(object, []byte("\nkind: "+kind+"\n")) {
			return a.create(ctx, path+"?fieldValidation=Strict", object)
		}
	}
	return fmt.Errorf("an object of unknown kind:\n%s", object)
}

func (a api) create(ctx context.Context, path string, object []byte) error {
	r, err := a.request(ctx, http.MethodPost, path, object)
	if err != nil {
		return err
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		why, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s\n%s", path, answer.Status, why)
	}
	return nil
}
