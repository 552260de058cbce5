//go:build stores

package main

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"

	"github.com/concord-go/concord/examples/three"
)

// env returns a variable set by make stores. Without a server these tests fail.
func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is empty: run make stores", name)
	}
	return v
}

// check runs the command on a real server, in real time, and compares its output.
func check(t *testing.T, at string) {
	t.Helper()
	var out bytes.Buffer
	if err := open(t.Context(), &out, at); err != nil {
		t.Error(err)
	}
	three.Compare(t, "bank", out.String())
}

func TestOutput_OnEtcd(t *testing.T) { check(t, "etcd:"+env(t, "CONCORD_ETCD")) }

func TestOutput_OnKubernetes(t *testing.T) { check(t, "kubernetes:"+proxy(t)) }

// proxy works like kubectl proxy, with the rights of examples/kubernetes/rbac.yaml.
func proxy(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(env(t, "CONCORD_KUBERNETES"))
	if err != nil {
		t.Fatal(err)
	}
	token := env(t, "CONCORD_KUBERNETES_TOKEN")
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		// made at start
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		// for watches
		FlushInterval: -1,
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s.URL
}
