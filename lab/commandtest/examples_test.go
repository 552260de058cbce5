package commandtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples_CanBeCopied copies the programs below examples into an empty module beside this
// library. They compile here, so they compile there if the go command finds all that they import
// and embed, and nothing internal is among it.
func TestExamples_CanBeCopied(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dirs, err := filepath.Glob(filepath.Join(root, "examples", "*", "*.go"))
	require.NoError(t, err)
	to, copied := t.TempDir(), map[string]bool{}
	for _, file := range dirs {
		from := filepath.Dir(file)
		name := filepath.Base(from)
		if copied[name] || name == "three" || name == "snippets" {
			continue
		}
		require.NoError(t, os.CopyFS(filepath.Join(to, name), os.DirFS(from)))
		copied[name] = true
	}
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	require.NoError(t, err)
	work = regexp.MustCompile(`(?m)^\t\.`).ReplaceAll(work, []byte("\t"+root))
	work = append(work, "use .\n"...)
	require.NoError(t, os.WriteFile(filepath.Join(to, "go.work"), work, 0o600))
	mod := filepath.Join(to, "go.mod")
	require.NoError(t, os.WriteFile(mod, []byte("module stranger\n"), 0o600))
	list := exec.Command("go", "list", "-f", "{{.Name}}", "./...")
	list.Dir = to
	list.Env = append(os.Environ(), "GOWORK="+filepath.Join(to, "go.work"), "GOPROXY=off",
		"GOSUMDB=off", "GOTOOLCHAIN=local")
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	require.NoError(t, err, problems.String())
	require.GreaterOrEqual(t, strings.Count(string(out), "main"), 24)
}
