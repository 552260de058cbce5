package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(
		"github.com/asynkron/protoactor-go/actor.NewThrottle.func1"))
}

func TestRun_PrintsTheMembers(t *testing.T) {
	port, probes := freePort(t), fmt.Sprintf("127.0.0.1:%d", ports.Free(t, 1)[0])
	self := fmt.Sprintf("incarnation 1: 127.0.0.1:%d\n", port)
	ctx, cancel := context.WithCancel(t.Context())
	defer http.DefaultClient.CloseIdleConnections()
	var out child.Screen
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, &out, []string{"-port", fmt.Sprint(port), "-at",
			fmt.Sprintf("127.0.0.1:%d", port+healthAbove),
			"-probes", probes})
	}()
	await(t, self, out.String)
	for _, probe := range []string{"livez", "readyz"} { // readyz follows the first line
		await(t, "200 OK", func() string {
			answer, err := http.Get("http://" + probes + "/" + probe)
			if err != nil {
				return err.Error()
			}
			_ = answer.Body.Close()
			return answer.Status
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// await waits until got returns want.
func await(t *testing.T, want string, got func() string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for is := got(); is != want; is = got() {
		if time.Now().After(deadline) {
			t.Fatalf("%q, want %q", is, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freePort returns a free port for which port healthAbove higher is free too.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		if port := ports.Free(t, 1)[0]; ports.Claim(t, port+healthAbove) {
			return port
		}
	}
}

func TestNewProvider(t *testing.T) {
	for _, name := range []string{"automanaged", "etcd", "kubernetes", "zookeeper"} {
		if p, err := newProvider(name, []string{"127.0.0.1:1"}, 1); err != nil || p == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := run(t.Context(), &child.Screen{}, []string{"-provider", "consul"}); !errors.Is(err,
		node.ErrInvalid) || !strings.Contains(err.Error(), "consul") {
		t.Errorf("an unknown provider: %v", err)
	}
}
