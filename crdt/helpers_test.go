package crdt_test

import (
	"log/slog"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
)

func encode[T crdt.Value[T]](t require.TestingT, v T) string {
	b, err := v.AppendBinary(nil)
	require.NoError(t, err)
	return string(b)
}

// parsed returns the store and the vector of an encoded value.
func parsed[T crdt.Value[T]](t require.TestingT, v T) (causal.Store, causal.Vector) {
	s, seen, err := causal.ParseValue([]byte(encode(t, v)))
	require.NoError(t, err)
	return s, seen
}

// seen returns the events that a value used alone has seen.
func seen[T crdt.Value[T]](t require.TestingT, v T) causal.Vector {
	_, seen := parsed(t, v)
	return seen
}

// slots returns the number of replicas that counted since the last reset.
func slots(c slog.LogValuer) int64 { return c.LogValue().Group()[0].Value.Int64() }

func deltaBytes(t require.TestingT, d crdt.Delta) []byte {
	b, err := d.AppendBinary(nil)
	require.NoError(t, err)
	return b
}
