package noderun_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds the wait for every expected event, however busy the machine is.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
