package settings_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/settings"
)

type port int

var errPort = errors.New("port must be positive")

func (p port) Validate() error {
	if p <= 0 {
		return errPort
	}
	return nil
}

func TestRead(t *testing.T) {
	says := func(p port) func(any) error {
		return func(into any) error { *into.(*port) = p; return nil }
	}
	p, err := settings.Read[port](says(8))
	require.NoError(t, err)
	require.Equal(t, port(8), p)

	_, err = settings.Read[port](says(-8))
	require.ErrorIs(t, err, errPort)

	bad := errors.New("line 3: no such setting")
	_, err = settings.Read[port](func(any) error { return bad })
	require.ErrorIs(t, err, bad)
}

func TestJoin_isShort(t *testing.T) {
	require.NoError(t, settings.Join())
	require.NoError(t, settings.Join(nil))
	require.EqualError(t, settings.Join(errPort, errPort), errors.Join(errPort, errPort).Error())

	long := fmt.Errorf("%w: Host (%s) is a wildcard", errPort, strings.Repeat("é", 1<<20))
	err := settings.Join(long)
	require.ErrorIs(t, err, errPort)
	require.Less(t, len(err.Error()), 1000)
	require.Contains(t, err.Error(), "port must be positive: Host (éé")
	require.Contains(t, err.Error(), "2096396 bytes left out")
	require.Contains(t, err.Error(), "éé) is a wildcard")

	many := make([]error, 100_000)
	for i := range many {
		many[i] = errPort
	}
	require.NotContains(t, settings.Join(append(many[:20:20], nil)...).Error(), "more problems")
	err = settings.Join(many...)
	require.Equal(t, 20, strings.Count(err.Error(), errPort.Error()))
	require.Contains(t, err.Error(), "and 99980 more problems")
	require.Len(t, many, 100_000)
	require.Equal(t, errPort, many[20], "the slice of the caller was written")
}
