package main

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// The output must match the comment of the command. In the bubble B's wait takes no time.
func TestOutput(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, promised, _ := strings.Cut(string(source), "//\tgo run ./examples/fencing\n//\n")
	promised, _, _ = strings.Cut(promised, "//\n")
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		require.Equal(t, strings.ReplaceAll(promised, "//\t", ""), out.String())
	})
}
