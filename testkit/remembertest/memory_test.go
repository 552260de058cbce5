package remembertest_test

import (
	"testing"

	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/testkit/remembertest"
)

func TestMemory(t *testing.T) {
	remembertest.Run(t, func(*testing.T) (a, b sharding.RememberStore) {
		m := &remembertest.Memory{}
		return m, m
	})
}
