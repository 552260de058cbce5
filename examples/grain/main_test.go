package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/examples/three"
)

// The output of each lookup must match the command's comment.
func TestOutput_IsAsPromised(t *testing.T) {
	for command, lookup := range map[string]string{"grain": "grains",
		"grain -lookup disthash": "disthash"} {
		t.Run(lookup, func(t *testing.T) {
			three.CheckLines(t, command, func(ctx context.Context, out io.Writer) error {
				return run(ctx, out, lookup)
			})
		})
	}
}

func TestLookup_ThatDoesNotExist(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, "other"), "neither grains nor disthash")
}
