package noderun_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
)

// TestRun_ACertificateMustNameTheAddress covers addresses that are known only once a member
// listens.
func TestRun_ACertificateMustNameTheAddress(t *testing.T) {
	ca, err := pki.NewAuthority("right")
	require.NoError(t, err)
	dir := t.TempDir()
	authority, err := ca.Write(dir)
	require.NoError(t, err)
	run := func(listen string, hosts ...string) error {
		cert, key, err := ca.WriteMember(dir, "a", pki.Member{Hosts: hosts})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quiet(newHands())
		cfg.Remote = node.Config{Host: listen, TLS: node.TLSFiles(cert, key, authority)}
		return node.Run(ctx, cfg, func(n *node.Node) error {
			n.Go(func(context.Context) error { cancel(); return nil })
			return nil
		})
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		require.NoError(t, run(host, "127.0.0.1", "::1"), host)
		require.ErrorContains(t, run(host, "10.0.0.1"), "only for: 10.0.0.1", host)
	}
}
