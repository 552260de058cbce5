// Package scenarios plays the golden scenarios of a test: text files that say what happens, and
// what the code under test then did. A test that uses it has the flag -update, which rewrites them.
package scenarios

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden scenarios")

// Play runs a subtest for each file that matches the pattern, of which there must be some. play
// returns what the text of the file should be.
func Play(t *testing.T, pattern string, play func(t *testing.T, path, text string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			got := play(t, path, string(text))
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}
