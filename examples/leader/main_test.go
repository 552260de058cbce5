package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/child"
)

// promised returns the output of a process in the comment of the command.
func promised(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(source), "//\tgo run ./examples/leader "+name+"\n//\n//\t")
	require.True(t, ok)
	text, _, _ := strings.Cut(after, "\n//\n")
	return strings.ReplaceAll(text, "\n//\t", "\n") + "\n"
}

// TestOutput_IsAsPromised runs both on the file store. The output of each must match the comment of
// the command.
func TestOutput_IsAsPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "leases")
		var processes sync.WaitGroup
		start := func(name string) (out *child.Screen, stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			out = &child.Screen{}
			processes.Go(func() {
				if err := run(ctx, out, []string{"-at", dir, name}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			time.Sleep(time.Second) // virtual
			return out, cancel
		}
		a, stopA := start("A")
		b, stopB := start("B")
		stopA()
		time.Sleep(time.Second)
		stopB()
		processes.Wait()
		require.Equal(t, promised(t, "A"), a.String())
		require.Equal(t, promised(t, "B"), b.String())
	})
}

func TestRun_BadArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {"-x"}} {
		require.Error(t, run(t.Context(), &child.Screen{}, args))
	}
	require.ErrorIs(t, run(t.Context(), &child.Screen{}, []string{"-store", "redis", "A"}),
		coordination.ErrInvalid)
	require.ErrorContains(t, run(t.Context(), &child.Screen{},
		[]string{"-store", "etcd", "-at", ",", "A"}), "Endpoints has an empty one")
	require.NoError(t, run(t.Context(), &child.Screen{}, []string{"-h"}))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	require.ErrorContains(t, run(t.Context(), &child.Screen{},
		[]string{"-store", "kubernetes", "A"}), "does this run in a pod")
}
