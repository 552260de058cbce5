package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBill(t *testing.T) {
	const text = `{"Path": "example.org/us", "Main": true}
{"Path": "example.org/z", "Version": "v1.0.0", "Sum": "h1:AAEC"}
{"Path": "example.org/unused", "Version": "v1.0.0"}
{"Path": "example.org/a", "Version": "v1.0.0", "Sum": "h1:AAEC", "Replace": {"Path": "x", "Version": "v2.0.0", "Sum": "h1:/w=="}}`
	modules, err := modulesOf([]byte(text), []string{"example.org/us", "example.org/a", "example.org/z"})
	require.NoError(t, err)
	got, err := json.Marshal(bill(modules))
	require.NoError(t, err)
	require.JSONEq(t, `{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": {"component": {"type": "library", "name": "example.org/us", "purl": "pkg:golang/example.org/us"}},
		"components": [
			{"type": "library", "name": "example.org/a", "version": "v2.0.0", "purl": "pkg:golang/example.org/a@v2.0.0", "hashes": [{"alg": "SHA-256", "content": "ff"}]},
			{"type": "library", "name": "example.org/z", "version": "v1.0.0", "purl": "pkg:golang/example.org/z@v1.0.0", "hashes": [{"alg": "SHA-256", "content": "000102"}]}]}`, string(got))
	_, err = modulesOf([]byte("{"), nil)
	require.ErrorContains(t, err, "output of go list -m")
}

// TestRun_HasWhatThisModuleIsBuiltOf asks go itself.
func TestRun_HasWhatThisModuleIsBuiltOf(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	var doc document
	require.NoError(t, json.Unmarshal([]byte(out.String()), &doc))
	require.Equal(t, "github.com/concord-go/concord", doc.Metadata.Component.Name)
	for _, c := range doc.Components {
		require.NotEmpty(t, c.Version, c.Name)
		require.NotEmpty(t, c.Hashes, c.Name)
	}
}
