package main

import (
	"archive/zip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// unzip returns the files of an archive by name, without the directory of the member.
func unzip(t *testing.T, name string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(name)
	require.NoError(t, err)
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[filepath.Base(f.Name)] = string(text)
	}
	return files
}

const configured = `
node:
  cluster: shop # do not tell: hunter2
  secret-file: /etc/shop/secret
  tls: {key: hunter2, ca: /etc/ca.pem}
leases:
  shop:
    dsn: postgres://concord:hunter2@10.0.0.1/leases?sslpassword=hunter2
    endpoints: ["https://user:hunter2@10.0.0.1:2379", "${ETCD:-https://:hunter2@b}"]
    options: "host=a password=hunter2 user=concord"
    password: {first: hunter2, second: [hunter2]}
`

func TestBundle_HasWhatSomebodyElseNeedsAndNoSecrets(t *testing.T) {
	s := newSite(t)
	s.add(t, "cart/1", "hunter2")
	mine, err := s.session.Lease("mine").TryAcquire(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, mine.Release(context.Background())) }()
	dir := t.TempDir()
	config := filepath.Join(dir, "concord.yaml")
	require.NoError(t, os.WriteFile(config, []byte(configured), 0o600))

	file := filepath.Join(dir, "bundle.zip")
	status, out, errs := ctlRun(t, s.url, "bundle", file, "-config", config)
	require.Equal(t, exitOK, status, errs)
	require.Contains(t, out, "names entries, leases and addresses")
	files := unzip(t, file)
	require.Contains(t, files["overview.json"], `"program"`)
	require.Contains(t, files["overview.json"], "go1.")
	require.Contains(t, files["leases-1.json"], `"mine"`)
	require.Contains(t, files["events.json"], "items")
	require.Contains(t, files["README.txt"], "Written by concordctl")
	for _, kept := range []string{"cluster: shop", "/etc/shop/secret", "/etc/ca.pem",
		"10.0.0.1:2379", "host=a", "ETCD"} {
		require.Contains(t, files["concord.yaml"], kept)
	}
	for name, text := range files {
		require.NotContains(t, text, "hunter2", name)
		require.NotContains(t, text, secret, name)
	}

	before, err := os.ReadFile(file)
	require.NoError(t, err)
	status, _, errs = ctlRun(t, s.url, "bundle", file)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "exists")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after, "a file that exists is not changed")
}

func TestBundle_SaysWhatIsMissing(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	some, none := filepath.Join(dir, "some.zip"), filepath.Join(dir, "none.zip")
	const down = "http://127.0.0.1:1"
	status, _, errs := ctlRun(t, s.url, "bundle", some, down)
	require.Equal(t, exitWrong, status)
	require.Contains(t, errs, "no answer from "+down)
	require.Contains(t, unzip(t, some)["README.txt"], "Missing: "+down)

	status, _, errs = ctlRun(t, down, "bundle", none)
	require.Equal(t, exitSilent, status)
	require.Contains(t, errs, "nothing was written")
	require.NoFileExists(t, none)

	status, _, _ = ctlRun(t, s.url, "bundle", none, "-config", filepath.Join(dir, "none.yaml"))
	require.Equal(t, exitNone, status)
	require.NoFileExists(t, none)
}
