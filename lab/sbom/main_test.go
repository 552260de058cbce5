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
	modules, err := modulesOf([]byte(text), []string{"example.org/us", "example.org/a",
		"example.org/z"})
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

// TestRun_HasWhatEachModuleIsBuiltOf compares the output with that of the go command.
func TestRun_HasWhatEachModuleIsBuiltOf(t *testing.T) {
	const ours = "github.com/concord-go/concord"
	for dir, want := range map[string]string{"": "go.etcd.io/bbolt",
		"/coordination/zookeeper": "github.com/go-zookeeper/zk"} {
		var out strings.Builder
		require.NoError(t, run(&out, "../.."+dir))
		var doc document
		require.NoError(t, json.Unmarshal([]byte(out.String()), &doc))
		require.Equal(t, ours+dir, doc.Metadata.Component.Name)
		names := map[string]bool{}
		for _, c := range doc.Components {
			names[c.Name] = true
			require.NotEmpty(t, c.Version, c.Name)
			if c.Name != ours { // taken from a directory
				require.NotEmpty(t, c.Hashes, c.Name)
			}
		}
		require.True(t, names[want], want)
		require.Equal(t, dir != "", names[ours], "the root is a component of a nested module")
		require.Equal(t, dir != "", names["github.com/go-zookeeper/zk"])
	}
}
