package crdt_test

import (
	"log/slog"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

type logValue = slog.Value

func encode[T crdt.Value[T]](t require.TestingT, v T) string {
	b, err := v.AppendBinary(nil)
	require.NoError(t, err)
	return string(b)
}

func deltaBytes(t require.TestingT, d crdt.Delta) []byte {
	b, err := d.AppendBinary(nil)
	require.NoError(t, err)
	return b
}
