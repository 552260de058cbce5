package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/races"
)

const childEnv = "CONCORD_EXAMPLE_GRAIN"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The output must match the command's comment. The example runs as a separate process, since two
// members of Proto.Actor in one process race for the logger of gRPC.
func TestOutput_IsAsPromised(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, promised, found := strings.Cut(string(source), "//	go run ./examples/grain\n//\n")
	require.True(t, found)
	promised, _, _ = strings.Cut(promised, "package main")
	var out bytes.Buffer
	p := child.Start(t, []string{childEnv + "=yes"}, func(line []byte) { out.Write(line) })
	require.Zero(t, p.ExitCode(), p.Stderr())
	require.Equal(t, strings.ReplaceAll(promised, "//	", ""), out.String())
	require.Empty(t, races.Reported(p.Stderr()))
}
