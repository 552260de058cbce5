package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples_CanBeCopied copies the programs below examples into an empty module, and builds them
// there. Those that are modules themselves must import nothing that another module cannot.
func TestExamples_CanBeCopied(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*.go"))
	require.NoError(t, err)
	copied := map[string]bool{}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || name == "three" || name == "snippets" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			require.False(t, strings.HasPrefix(line, "\t\"github.com/concord-go/concord/") &&
				strings.Contains(line, "/internal/"), "%s: %s", file, line)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "go.mod")); err == nil {
			continue
		}
		to := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(to, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o600))
		copied[name] = true
	}
	require.Greater(t, len(copied), 15)

	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, needs, ok := strings.Cut(string(mod), "module github.com/concord-go/concord\n")
	require.True(t, ok)
	needs = "module example.org/copied\n" + needs +
		"\nrequire github.com/concord-go/concord v0.0.0\n" +
		"\nreplace github.com/concord-go/concord => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(needs), 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "./...")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false",
		"GOPROXY=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
