package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) != "" {
		runMember()
	}
	goleak.VerifyTestMain(m)
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), &out, t.TempDir()))
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	said := regexp.MustCompile(` in .*\n`).ReplaceAllString(out.String(), " in ...\n")
	want := regexp.MustCompile(`(?m)^//\t(\w.*\n)`).FindAllStringSubmatch(string(source), -1)
	var doc string
	for _, line := range want[1:] { // after the command
		doc += line[1]
	}
	require.Equal(t, regexp.MustCompile(` in /.*\n`).ReplaceAllString(doc, " in ...\n"), said,
		"what the doc comment shows")
}
