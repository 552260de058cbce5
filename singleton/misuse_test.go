package singleton_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/singleton"
)

func TestMisuse_ASingletonThatNobodyMadeIsInvalid(t *testing.T) {
	for name, s := range map[string]*singleton.Singleton{"nil": nil, "zero": {}} {
		_, err := s.Ask(t.Context(), wrapperspb.String("hello"))
		require.ErrorIs(t, err, singleton.ErrInvalid, name)
		require.ErrorIs(t, s.Close(t.Context()), singleton.ErrInvalid, name)
	}
}
