package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/documenttest"
)

func openIn(t *testing.T, dir string) file.Store {
	s, err := file.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDocuments(t *testing.T) {
	documenttest.Run(t, func(t *testing.T) (a, b leasestore.Documents) {
		dir := t.TempDir()
		return openIn(t, dir), openIn(t, dir)
	})
}

// A damaged document causes an error that names it, and is not overwritten.
func TestDocuments_DamagedOnesAreRefused(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	v, err := s.SwapDocument(t.Context(), "x", "", []byte("hello"))
	require.NoError(t, err)
	path := filepath.Join(dir, "n-x.document")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"empty": "", "cut off": string(good[:20]), "changed": strings.Replace(string(good), "hello",
			"hullo", 1),
		"of another name":   strings.Replace(string(good), `"x"`, `"y"`, 1),
		"of another format": strings.Replace(string(good), "document 1", "document 2", 1),
		"too large":         string(good) + strings.Repeat("x", leasestore.MaxDocument),
	} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, _, err = s.LoadDocument(t.Context(), "x")
		require.ErrorIs(t, err, leasestore.ErrDamaged, name)
		require.ErrorContains(t, err, `"x" in n-x.document`, name)
		_, err = s.SwapDocument(t.Context(), "x", v, []byte("next"))
		require.ErrorIs(t, err, leasestore.ErrRefused, name)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, bad, string(left), name)
	}
}
