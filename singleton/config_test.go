package singleton

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The defaults are those that the comments of Config name.
func TestConfig_Defaults(t *testing.T) {
	require.Equal(t, Config{
		Name: "jobs", Settle: 2 * time.Second, StoreTimeout: 10 * time.Second,
		HandOver: 10 * time.Second, MinBackoff: 100 * time.Millisecond,
		MaxBackoff: 10 * time.Second, Tries: 5, Buffer: 1000, LeaseName: "singleton-jobs",
	}, Config{Name: "jobs"}.withDefaults())
}
