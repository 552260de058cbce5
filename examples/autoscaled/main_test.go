package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/races"
)

func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) != "" {
		runMember()
	}
	goleak.VerifyTestMain(m)
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	var stderr child.Screen
	t.Setenv("GORACE", "exitcode=0") // Proto.Actor itself has data races
	require.NoError(t, show(t.Context(), &out, &stderr, t.TempDir()), stderr.String())
	require.Empty(t, races.Reported(stderr.String()))
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	var doc string
	for _, line := range regexp.MustCompile(`(?m)^//\t(\d.*\n|of .*\n)`).FindAllStringSubmatch(
		string(source), -1) {
		doc += line[1]
	}
	require.Equal(t, doc, out.String(), "what the doc comment shows")
}
