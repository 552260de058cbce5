package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
)

func TestRemote_RefusesFilesThatCannotBeUsed(t *testing.T) {
	ca, err := pki.NewAuthority("right")
	require.NoError(t, err)
	dir := t.TempDir()
	authority, err := ca.Write(dir)
	require.NoError(t, err)
	cert, key, err := ca.WriteMember(dir, "a", pki.Member{Hosts: []string{"10.0.0.1"}})
	require.NoError(t, err)
	files := node.TLSFiles(cert, key, authority)

	_, err = node.Remote(node.Config{Host: "10.0.0.1", Port: 7, TLS: files})
	require.NoError(t, err, "TLS is what lets a member listen beyond loopback")
	_, err = node.Remote(node.Config{Host: "10.0.0.2", Port: 7, TLS: files})
	require.ErrorIs(t, err, node.ErrInvalid)
	require.ErrorContains(t, err, "10.0.0.1", "the error says for whom the certificate speaks")
	_, err = node.Remote(node.Config{Host: "0.0.0.0", Port: 7,
		Advertised: "10.0.0.2:7", TLS: files})
	require.ErrorIs(t, err, node.ErrInvalid)
	_, err = node.Remote(node.Config{TLS: node.TLSFiles(cert, "", authority)})
	require.ErrorIs(t, err, node.ErrInvalid)
	_, err = node.Remote(node.Config{TLS: node.TLSFiles(cert, key+".missing", authority)})
	require.ErrorIs(t, err, node.ErrInvalid)

	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("short\n"), 0o600))
	_, err = node.Remote(node.Config{Host: "10.0.0.1", Port: 7, SecretFile: secret})
	require.ErrorIs(t, err, node.ErrInvalid)
	require.ErrorContains(t, err, "SecretFile")
	require.NotContains(t, err.Error(), "short", "no secret in errors")
	_, err = node.Remote(node.Config{SecretFile: secret + strings.Repeat("x", 1<<20)})
	require.ErrorContains(t, err, "SecretFile")
	require.Less(t, len(err.Error()), 2000)
	require.NoError(t, os.WriteFile(secret, []byte("long enough to be one\n"), 0o600))
	_, err = node.Remote(node.Config{Host: "10.0.0.1", Port: 7, SecretFile: secret})
	require.NoError(t, err)
}
