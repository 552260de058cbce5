package docs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples_CanBeCopied copies the programs below examples into an empty module beside this
// library. They compile here, so they compile there if the go command finds all that they import
// and embed, and nothing internal is among it. Examples that are modules compile alone: see make
// check.
func TestExamples_CanBeCopied(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dirs, err := filepath.Glob(filepath.Join(root, "examples", "*"))
	require.NoError(t, err)
	to := t.TempDir()
	copied := 0
	for _, from := range dirs {
		_, err := os.Stat(filepath.Join(from, "go.mod"))
		if name := filepath.Base(from); err == nil || name == "three" || name == "snippets" ||
			name == "kubernetes" {
			continue
		}
		require.NoError(t, os.CopyFS(filepath.Join(to, filepath.Base(from)), os.DirFS(from)))
		copied++
	}
	require.Greater(t, copied, 20)
	write := func(name, format string, args ...any) {
		require.NoError(t, os.WriteFile(filepath.Join(to, name),
			fmt.Appendf(nil, format, args...), 0o600))
	}
	write("go.mod", "module stranger\n\ngo 1.26\n")
	write("go.work", "go 1.26.0\n\nuse .\nuse %s\n", root)
	list := exec.Command("go", "list", "-f", "{{.Name}}", "./...")
	list.Dir = to
	list.Env = append(os.Environ(), "GOWORK="+filepath.Join(to, "go.work"), "GOPROXY=off",
		"GOSUMDB=off", "GOTOOLCHAIN=local")
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	require.NoError(t, err, problems.String())
	require.GreaterOrEqual(t, strings.Count(string(out), "main"), 20)
}
