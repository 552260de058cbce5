package settings_test

import (
	"errors"
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
