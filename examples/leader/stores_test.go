//go:build stores

package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
)

// TestOutput_OnEtcd runs both on a real etcd, in real time. The tokens are revisions there.
func TestOutput_OnEtcd(t *testing.T) {
	at := os.Getenv("CONCORD_ETCD")
	if at == "" {
		t.Fatal("CONCORD_ETCD is empty: run make stores")
	}
	var processes sync.WaitGroup
	start := func(name string) (out *child.Screen, stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		out = &child.Screen{}
		processes.Go(func() {
			if err := run(ctx, out, []string{"-store", "etcd", "-at", at, name}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return out, cancel
	}
	until := func(out *child.Screen, text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return strings.Contains(out.String(), text)
		}, time.Minute, 10*time.Millisecond)
	}
	a, stopA := start("A")
	until(a, "A leads")
	b, stopB := start("B")
	until(b, "B follows A")
	stopA()
	until(b, "B leads")
	stopB()
	processes.Wait()
	token := regexp.MustCompile(`token \d+`)
	plain := func(s string) string { return token.ReplaceAllString(s, "token N") }
	require.Equal(t, plain(promised(t, "A")), plain(a.String()))
	require.Equal(t, plain(promised(t, "B")), plain(b.String()))
}
