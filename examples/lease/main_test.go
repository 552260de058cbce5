package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is the output of all nodes, in order.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// of returns the output of one node.
func (l *lines) of(node string) (said []string) {
	for _, line := range l.all {
		if strings.HasPrefix(line, node+" ") {
			said = append(said, line)
		}
	}
	return said
}

// TestOutput_IsAsPromised runs both concurrently. The output of each must match the comment of the
// command, and B must work only after A has ended.
func TestOutput_IsAsPromised(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	promised := func(node string) []string {
		_, after, _ := strings.Cut(string(source), "//\tgo run ./examples/lease "+node+"\n//\n//\t")
		text, _, _ := strings.Cut(after, "\n//\n")
		return strings.Split(text, "\n//\t")
	}
	synctest.Test(t, func(t *testing.T) {
		dir, out := filepath.Join(t.TempDir(), "leases"), &lines{}
		var nodes sync.WaitGroup
		start := func(node string) (stop func()) {
			ctx, cancel := context.WithCancelCause(t.Context())
			nodes.Go(func() {
				if err := run(ctx, out, dir, node); err != nil {
					t.Errorf("%s: %v", node, err)
				}
			})
			synctest.Wait()
			return func() { cancel(errors.New("interrupt signal received")) }
		}
		stopA := start("A")
		time.Sleep(500 * time.Millisecond)
		stopB := start("B")
		time.Sleep(time.Second)
		stopA()
		time.Sleep(500 * time.Millisecond)
		stopB()
		nodes.Wait()
		require.Equal(t, promised("A"), out.of("A"))
		require.Equal(t, append(promised("B"), "B ends: interrupt signal received"), out.of("B"))
	})
}
