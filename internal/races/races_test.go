package races_test

import (
	"slices"
	"testing"

	"github.com/concord-go/concord/internal/races"
)

const line = "==================\n"

func TestReported(t *testing.T) {
	ours := "WARNING: DATA RACE\nRead at 0x1 by goroutine 7:\n  node.Start()\n"
	theirs := "WARNING: DATA RACE\nWrite at 0x1 by goroutine 7:\n  google.golang.org/grpc/grpclog.SetLoggerV2()\n"
	for name, c := range map[string]struct {
		stderr string
		want   []string
	}{
		"nothing": {"", nil},
		"a log":   {"level=INFO\n", nil},
		"one": {"level=INFO\n" + line + ours + line + "level=INFO\n",
			[]string{"\n" + ours}},
		"of upstream": {line + theirs + line, nil},
		"in a closure": {
			line + "WARNING: DATA RACE\n  remote.(*endpointManager).stop.func1()\n" + line, nil},
		"one of both":   {line + theirs + line + line + ours + line, []string{"\n" + ours}},
		"killed in one": {line + "WARNING: DATA RACE\nWrite at 0x1 by", nil},
		"killed in another": {line + ours + line + line + "WARNING: DATA RACE\n",
			[]string{"\n" + ours}},
	} {
		if got := races.Reported(c.stderr); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
