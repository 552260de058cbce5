package members

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/asynkron/protoactor-go/remote"
)

// certified gives each member a certificate for its own address.
func certified(t *testing.T, ca *pki.Authority, dir string, specs []spec) {
	file, err := ca.Write(dir)
	require.NoError(t, err)
	for i := range specs {
		address := fmt.Sprintf("127.0.0.1:%d", specs[i].Port)
		cert, key, err := ca.WriteMember(dir, fmt.Sprint(i),
			pki.Member{Hosts: []string{"127.0.0.1"}, Addresses: []string{address}})
		require.NoError(t, err)
		specs[i].TLS = node.TLSFiles(cert, key, file)
	}
}

func TestThreeProcesses_TLS(t *testing.T) {
	ca, err := pki.NewAuthority("right")
	require.NoError(t, err)
	s, dir := specs(t, 3), t.TempDir()
	certified(t, ca, dir, s)
	a, b, c := launch(t, s[0]), launch(t, s[1]), launch(t, s[2])
	agreed(t, a, b, c)

	// A new certificate: one member is killed and comes back, while the others stay.
	certified(t, ca, dir, s)
	b.Kill()
	agreed(t, a, c)
	agreed(t, a, launch(t, s[1]), c)

	// Strangers: without TLS, without a certificate, and with the certificate of another member.
	pair, err := tls.LoadX509KeyPair(s[1].TLS.Cert, s[1].TLS.Key)
	require.NoError(t, err)
	blind := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	stolen := blind.Clone()
	stolen.Certificates = []tls.Certificate{pair}
	for name, creds := range map[string]credentials.TransportCredentials{
		"plain": insecure.NewCredentials(), "no certificate": credentials.NewTLS(blind),
		"another's": credentials.NewTLS(stolen),
	} {
		conn, err := grpc.NewClient(a.started(), grpc.WithTransportCredentials(creds))
		require.NoError(t, err)
		stream, err := remote.NewRemotingClient(conn).Receive(t.Context())
		if err == nil {
			_ = stream.Send(stranger.Introduce(fmt.Sprintf("127.0.0.1:%d", s[2].Port)))
			_, err = stream.Recv()
		}
		require.Error(t, err, name)
		require.NoError(t, conn.Close())
	}
	require.Empty(t, a.reports("removed"))
}

func TestThreeProcesses_Secret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("a secret of this cluster\n"), 0o600))
	s := specs(t, 4)
	for i := range 3 {
		s[i].Secret = file
	}
	a, b, c := launch(t, s[0]), launch(t, s[1]), launch(t, s[2])
	agreed(t, a, b, c)
	// A member without the secret is listed, but exchanges no messages: no member learns the stamp
	// of the other.
	d := launch(t, s[3])
	d.waits("it sees itself", func() bool {
		return len(d.reports("started")) > 0 && len(d.view().Ages) == 1
	})
	for _, v := range d.reports("view") {
		require.LessOrEqual(t, len(v.Ages), 1)
	}
	for _, p := range []*process{a, b, c} {
		for _, v := range p.reports("view") {
			require.NotContains(t, v.Addrs, fmt.Sprintf("127.0.0.1:%d", s[3].Port))
		}
	}
}
