package guard

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/testkit/pki"
)

var here = pki.Member{Hosts: []string{"127.0.0.1"}}

// with returns the credentials of a stranger that presents a certificate, if any, and accepts any
// server.
func with(t *testing.T, cert, key []byte) grpc.DialOption {
	cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(t, err)
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(cfg))
}

// strange returns certificates that are not valid for a member at 127.0.0.1.
func strange(t *testing.T, right *pki.Authority) map[string]func() (cert, key []byte) {
	wrong, err := pki.NewAuthority("wrong")
	require.NoError(t, err)
	issue := func(a *pki.Authority, m pki.Member) func() (cert, key []byte) {
		return func() (cert, key []byte) {
			cert, key, err := a.Issue(m)
			require.NoError(t, err)
			return cert, key
		}
	}
	past := time.Now().Add(-time.Minute)
	return map[string]func() (cert, key []byte){
		"wrong authority": issue(wrong, here),
		"expired": issue(right, pki.Member{Hosts: here.Hosts,
			From: past.Add(-time.Hour), To: past}),
		"not valid yet": issue(right, pki.Member{Hosts: here.Hosts,
			From: time.Now().Add(time.Hour)}),
		"another's name": issue(right, pki.Member{Hosts: []string{"127.0.0.2", "localhost"}}),
		"nobody's name":  issue(right, pki.Member{}),
		"self-signed": func() (cert, key []byte) {
			return selfSigned(t)
		},
	}
}

// selfSigned returns the certificate of an authority that only its owner trusts.
func selfSigned(t *testing.T) (cert, key []byte) {
	a, err := pki.NewAuthority("self")
	require.NoError(t, err)
	cert, key, err = a.Issue(here)
	require.NoError(t, err)
	return append(cert, a.PEM()...), key
}

// TestTLS_StrangersAreNotHeard is the negative matrix for clients.
func TestTLS_StrangersAreNotHeard(t *testing.T) {
	p := newPaper(t)
	ca := p.authority("right")
	member := listen(t, Config{Files: p.files(ca, here)})

	attempts := map[string]grpc.DialOption{
		"no TLS":         grpc.WithTransportCredentials(insecure.NewCredentials()),
		"no certificate": with(t, nil, nil),
	}
	all := strange(t, ca)
	all["server certificate as client"] = func() (cert, key []byte) {
		cert, key, err := ca.Issue(pki.Member{Hosts: here.Hosts, Usages: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth}})
		require.NoError(t, err)
		return cert, key
	}
	for name, issue := range all {
		cert, key := issue()
		attempts[name] = with(t, cert, key)
	}
	for name, option := range attempts {
		s, err := open(t, member, "127.0.0.1:7", option, grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(1<<20)))
		require.Error(t, err, name)
		if s != nil {
			s.send(text(member, name))
		}
	}
	other := listen(t, Config{Files: p.files(ca, here)})
	other.mustDial(member).send(text(member, "hello"))
	member.hears("hello")
	require.Equal(t, []string{"hello"}, member.seen(), "nobody else was heard")
}

// TestTLS_MembersDoNotTalkToStrangers is the negative matrix for servers.
func TestTLS_MembersDoNotTalkToStrangers(t *testing.T) {
	p := newPaper(t)
	ca := p.authority("right")
	member := listen(t, Config{Files: p.files(ca, here)})
	all := strange(t, ca)
	all["client certificate as server"] = func() (cert, key []byte) {
		cert, key, err := ca.Issue(pki.Member{Hosts: here.Hosts, Usages: []x509.ExtKeyUsage{
			x509.ExtKeyUsageClientAuth}})
		require.NoError(t, err)
		return cert, key
	}
	for name, issue := range all {
		cert, key := issue()
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(t, err)
		lis := tls.NewListener(memnet.Listen(), &tls.Config{
			Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"},
			MinVersion: tls.VersionTLS13,
		})
		done := make(chan error, 1)
		go func() {
			c, err := lis.Accept()
			if err == nil {
				err = c.(*tls.Conn).Handshake()
				_ = c.Close()
			}
			done <- err
		}()
		creds := &tlsCredentials{member.guard.keeper}
		raw, err := memnet.Dial(t.Context(), "tcp", lis.Addr().String())
		require.NoError(t, err)
		_, _, err = creds.ClientHandshake(t.Context(), lis.Addr().String(), raw)
		require.Error(t, err, name)
		_ = raw.Close()
		require.Error(t, <-done, name)
		_ = lis.Close()
	}
	// A server without TLS.
	plain := listen(t, Config{})
	_, err := member.dial(plain)
	require.Error(t, err)
}

func TestTLS_ACertificateSpeaksForItsMemberOnly(t *testing.T) {
	p := newPaper(t)
	ca := p.authority("right")
	member := listen(t, Config{Files: p.files(ca, here)})

	// The host is the same, but the URI names one of its ports.
	a, b := bind(t), bind(t)
	a.serve(Config{Files: p.files(ca, pki.Member{Hosts: here.Hosts, Addresses: []string{
		a.address}})})
	b.serve(Config{Files: p.files(ca, pki.Member{Hosts: here.Hosts, Addresses: []string{
		b.address}})})
	a.mustDial(member).send(text(member, "from a"))
	member.hears("from a")
	_, err := open(t, member, b.address, a.guard.DialOptions()...)
	require.ErrorContains(t, err, "is not valid for")
	require.EqualValues(t, 1, member.process.Refusals()["unproven"])

	// A member that reaches a where b should be does not talk to it.
	creds := &tlsCredentials{member.guard.keeper}
	raw, err := memnet.Dial(t.Context(), "tcp", a.address)
	require.NoError(t, err)
	defer raw.Close()
	_, _, err = creds.ClientHandshake(t.Context(), b.address, raw)
	require.ErrorContains(t, err, "is not valid for")

	require.NoError(t, a.guard.Check(a.address))
	require.ErrorContains(t, a.guard.Check(b.address), a.address,
		"the error says for whom it speaks")
	require.ErrorContains(t, member.guard.Check("10.0.0.1:7"), "127.0.0.1")

	// A wildcard name is valid for every host that it matches.
	wild := listen(t, Config{Files: p.files(ca, pki.Member{Hosts: append([]string{"*.shop.test"},
		here.Hosts...)})})
	require.NoError(t, wild.guard.Check("a.shop.test:7"))
	require.NoError(t, wild.guard.Check("b.shop.test:8"))
	require.Error(t, wild.guard.Check("shop.test:7"))
	require.Error(t, wild.guard.Check("a.b.shop.test:7"))
}

// TestTLS_FilesAreReadAgain renews a certificate and replaces the authority while members talk.
func TestTLS_FilesAreReadAgain(t *testing.T) {
	p := newPaper(t)
	old, next := p.authority("old"), p.authority("next")
	fa, fb := p.files(old, here), p.files(old, here)
	a, b := listen(t, Config{Files: fa}), listen(t, Config{Files: fb})
	s := a.mustDial(b)

	look := func() { // at once, not within the second
		for _, e := range []*end{a, b} {
			e.guard.keeper.looked.mu.Lock()
			e.guard.keeper.looked.at = time.Time{}
			e.guard.keeper.looked.mu.Unlock()
		}
	}
	write := func(name string, data []byte) { require.NoError(t, os.WriteFile(name, data, 0o600)) }
	say := func(what string) {
		look()
		a.mustDial(b).send(text(b, what))
		b.hears(what)
	}
	say("with the old certificates")

	// A key that does not belong to its certificate is not used.
	key, err := os.ReadFile(fa.Key)
	require.NoError(t, err)
	_, other, err := old.Issue(here)
	require.NoError(t, err)
	write(fa.Key, other)
	say("with the certificate read before")
	write(fa.Key, key)

	// Neither is a certificate for another member, as a mistake in a renewal would put there.
	cert, err := os.ReadFile(fa.Cert)
	require.NoError(t, err)
	require.NoError(t, a.guard.Check(a.address))
	wrong, wrongKey, err := old.Issue(pki.Member{Hosts: []string{"10.0.0.1"}})
	require.NoError(t, err)
	write(fa.Key, wrongKey)
	write(fa.Cert, wrong)
	say("with the certificate that is valid for this member")
	write(fa.Key, key)
	write(fa.Cert, cert)

	both := append(old.PEM(), next.PEM()...)
	write(fa.Authorities[0], both) // b uses the same file
	say("while both authorities are trusted")
	for _, f := range []*Files{fa, fb} {
		cert, key, err := next.Issue(here)
		require.NoError(t, err)
		write(f.Key, key)
		write(f.Cert, cert)
		say("while one member has a new certificate, or both")
	}
	write(fa.Authorities[0], next.PEM())
	say("with the new authority only")

	cert, ckey, err := old.Issue(here)
	require.NoError(t, err)
	look()
	_, err = open(t, b, a.address, with(t, cert, ckey))
	require.Error(t, err, "the old authority is not trusted any more")

	s.send(text(b, "on the stream that was opened first"))
	b.hears("on the stream that was opened first")
}

func TestTLS_FilesThatCannotBeUsed(t *testing.T) {
	p := newPaper(t)
	ca := p.authority("right")
	good := p.files(ca, here)
	_, err := New(Config{Files: &Files{Cert: p.path("none.pem"), Key: good.Key,
		Authorities: good.Authorities}}, &Process{})
	require.ErrorContains(t, err, "none.pem")
	_, err = New(Config{Files: &Files{Cert: good.Cert, Key: good.Key, Authorities: []string{
		good.Key}}}, &Process{})
	require.ErrorContains(t, err, "holds no certificate")
	_, err = New(Config{Files: &Files{Cert: good.Cert, Key: good.Key}}, &Process{})
	require.ErrorContains(t, err, "at least one authority")
	_, err = New(Config{Files: p.files(p.authority("wrong"), here, ca)}, &Process{})
	require.ErrorContains(t, err, "as a server and as a client")
	half := p.files(ca, pki.Member{Hosts: here.Hosts, Usages: []x509.ExtKeyUsage{
		x509.ExtKeyUsageServerAuth}})
	_, err = New(Config{Files: half}, &Process{})
	require.ErrorContains(t, err, "as a server and as a client")
}

// Connections that do not begin with TLS are closed.
func TestTLS_GarbageBeforeTheHandshake(t *testing.T) {
	p := newPaper(t)
	member := listen(t, Config{Files: p.files(p.authority("right"), here)})
	c, err := memnet.Dial(t.Context(), "tcp", member.address)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	requireClosed(t, c)
}
