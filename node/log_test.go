package node_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
)

// screen is what a process prints. Proto.Actor's actors may print after a life has ended.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestRun_LogsNoErrorOfACleanLife, and few lines: Proto.Actor alone logs dozens.
func TestRun_LogsNoErrorOfACleanLife(t *testing.T) {
	for level, most := range map[slog.Level]int{slog.LevelInfo: 6, slog.LevelDebug: 1000} {
		var out screen
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quiet(newHands())
		cfg.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
			n.Go(func(context.Context) error { cancel(); return nil })
			return nil
		}))
		require.NotContains(t, out.String(), "level=ERROR")
		require.NotContains(t, out.String(), "level=WARN")
		require.Contains(t, out.String(), `msg="member is up"`)
		require.LessOrEqual(t, strings.Count(out.String(), "\n"), most, out.String())
		require.Equal(t, level == slog.LevelDebug, strings.Contains(out.String(), "Started partition manager"))
	}
}

// TestRun_LogsNoErrorOfAClusterThatStarts: three processes under Run, with the provider of Proto.Actor, which asks those
// that are not there yet.
func TestRun_LogsNoErrorOfAClusterThatStarts(t *testing.T) {
	free := ports.Free(t, 3)
	var hosts []string
	for _, port := range free {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", port))
	}
	t.Setenv(hostsEnv, strings.Join(hosts, ","))
	var all []*exec.Cmd
	for _, port := range free {
		t.Setenv(healthEnv, fmt.Sprint(port))
		cmd, _, _ := running(t, "cluster") // the first one asks the others for a second at least
		all = append(all, cmd)
	}
	for _, cmd := range all {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.NotContains(t, fmt.Sprint(cmd.Stderr), "level=ERROR")
	}
	require.Contains(t, fmt.Sprint(all[0].Stderr), `level=INFO msg="Bad connection to the node health status"`)
}
