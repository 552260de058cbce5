package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples_CanBeCopied: the programs below examples import nothing that Go refuses to another
// module. As they are built here, they also build in an empty module.
func TestExamples_CanBeCopied(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/*/*.go")
	require.NoError(t, err)
	read := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(filepath.Dir(file)) == "three" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `"github.com/concord-go/concord/(.*/)?internal/`, string(text), file)
		read++
	}
	require.Greater(t, read, 40)
}
