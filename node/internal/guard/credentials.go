package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// tlsCredentials performs each handshake with the current contents of the files.
type tlsCredentials struct{ keeper *keeper }

func (t *tlsCredentials) config() *tls.Config {
	id := t.keeper.identity()
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{id.cert},
		RootCAs:      id.roots,
		ClientCAs:    id.roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		// A resumed session would outlive the certificate with which it began.
		SessionTicketsDisabled: true,
	}
}

// ClientHandshake accepts the server only if its certificate is valid for the address that was
// dialed.
func (t *tlsCredentials) ClientHandshake(ctx context.Context, authority string,
	raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg := t.config()
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		return Speaks(s.PeerCertificates[0], authority)
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, raw)
}

// ServerHandshake accepts a client with a certificate of one of the authorities. The first message
// of each stream is checked against the addresses of the certificate.
func (t *tlsCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(t.config()).ServerHandshake(raw)
}

// Info implements credentials.TransportCredentials.
func (t *tlsCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (t *tlsCredentials) Clone() credentials.TransportCredentials {
	return &tlsCredentials{t.keeper}
}

// OverrideServerName implements credentials.TransportCredentials. It does nothing: the name is
// always that of the dialed address.
func (t *tlsCredentials) OverrideServerName(string) error { return nil }

// peerCertificate returns the verified certificate of the client of a connection, or nil without
// TLS.
func peerCertificate(info credentials.AuthInfo) *x509.Certificate {
	if t, ok := info.(credentials.TLSInfo); ok && len(t.State.VerifiedChains) > 0 {
		return t.State.PeerCertificates[0]
	}
	return nil
}

// maxSilence is the default of Config.Silence.
const maxSilence = 5 * time.Second

// serverCredentials counts connections before anything is read from them.
type serverCredentials struct {
	credentials.TransportCredentials
	conns   *conns
	silence time.Duration
}

// ServerHandshake implements credentials.TransportCredentials.
func (s *serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := s.conns.add(raw, 2*s.silence) // once for TLS, and once for the first message
	out, info, err := s.TransportCredentials.ServerHandshake(c)
	if err != nil {
		_ = c.Close() // the error of the handshake is the one to report
		return nil, nil, err
	}
	return out, &withConn{info, c}, nil
}

// Clone implements credentials.TransportCredentials.
func (s *serverCredentials) Clone() credentials.TransportCredentials {
	return &serverCredentials{s.TransportCredentials.Clone(), s.conns, s.silence}
}

// withConn is the authentication of a connection together with the connection.
type withConn struct {
	credentials.AuthInfo
	conn *conn
}
