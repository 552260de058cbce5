package fence

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzTokenOf(f *testing.F) {
	for _, s := range []string{"", "0", "1", "01", "+1", "9223372036854775807",
		"9223372036854775808", " 1", "1\n", "１"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := tokenOf(http.Header{Header: {s}})
		switch {
		case err != nil:
			require.ErrorIs(t, err, ErrInvalid)
			require.Zero(t, token)
			require.Less(t, len(err.Error()), 400)
		default:
			require.Equal(t, s, strconv.FormatUint(uint64(token), 10), "one form for each token")
			require.Positive(t, int64(token))
		}
	})
}
