package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/examples/three"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOutput_IsAsPromised(t *testing.T) { three.Check(t, "counter", run) }
