package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/examples/three"
)

func TestOutput_IsAsPromised(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, t.TempDir()))
	three.Compare(t, "durable", out.String())
}
