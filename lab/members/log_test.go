package members

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/ports"
)

// TestRun_LogsNoErrorOfAClusterThatStarts starts three processes under Run with Proto.Actor's
// provider, which queries members that have not started yet.
func TestRun_LogsNoErrorOfAClusterThatStarts(t *testing.T) {
	all := members(t, 3, "cluster") // the first one queries the others for at least a second
	for _, cmd := range all {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.NotContains(t, fmt.Sprint(cmd.Stderr), "level=ERROR")
	}
	require.Contains(t, fmt.Sprint(all[0].Stderr),
		`level=INFO msg="Bad connection to the node health status"`)
}

// members starts n processes of a cluster with Proto.Actor's provider, in a scenario.
func members(t *testing.T, n int, scenario string) (all []*exec.Cmd) {
	t.Helper()
	free := ports.Free(t, n)
	var hosts []string
	for _, port := range free {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", port))
	}
	t.Setenv(hostsEnv, strings.Join(hosts, ","))
	for _, port := range free {
		t.Setenv(healthEnv, fmt.Sprint(port))
		cmd, _, _ := running(t, scenario)
		all = append(all, cmd)
	}
	return all
}

// TestRun_LogsMessagesThatCannotBeSentAsErrors sends a string, and a message above MaxMessage, to
// another member. The caller sees no error, so the log is the only place that shows the mistake.
func TestRun_LogsMessagesThatCannotBeSentAsErrors(t *testing.T) {
	all := members(t, 2, "unsendable")
	for _, line := range []string{
		`level=ERROR msg="EndpointWriter failed to serialize message"`,
		`level=ERROR msg="EndpointWriter lost connection"`,
	} {
		require.Eventually(t, func() bool {
			return strings.Contains(fmt.Sprint(all[0].Stderr), line)
		}, patience, 10*time.Millisecond, line)
	}
	require.NotContains(t, fmt.Sprint(all[0].Stderr), "s3cret")
	require.Contains(t, fmt.Sprint(all[0].Stderr), "message=string")
}

// TestRun_LargeMessagesAreSentTogether sends a burst of messages that together exceed MaxMessage,
// which Proto.Actor packs into one batch.
func TestRun_LargeMessagesAreSentTogether(t *testing.T) {
	for _, p := range members(t, 2, "burst") {
		require.Eventually(t, func() bool {
			return strings.Contains(fmt.Sprint(p.Stderr), "burst received")
		}, patience, 10*time.Millisecond)
	}
}
