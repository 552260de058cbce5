package guard

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/concord-go/concord/testkit/pki"
)

// pipes are the listeners of members in virtual time, by address.
type pipes map[string]*bufconn.Listener

// bind returns a member that does not listen on a network.
func (p pipes) bind(t testing.TB, address string) *end {
	p[address] = bufconn.Listen(1 << 16)
	return &end{t: t, lis: p[address], address: address, process: &Process{}}
}

// serve starts a member, which calls other members in p.
func (p pipes) serve(e *end, cfg Config) *end {
	cfg.Advertised = e.address
	e.serve(cfg).guard.CallWith(append(e.guard.DialOptions(), p.dialer()))
	return e
}

func (p pipes) dialer() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
		return p[to].DialContext(ctx)
	})
}

// open opens a stream from one member to another.
func (p pipes) open(t testing.TB, to, from *end, options ...grpc.DialOption) (*stream, error) {
	return open(t, to, from.address, append(options, p.dialer())...)
}

// TestVouch_APeerThatCannotBeCalledBackIsRefused covers a peer whose address does not answer: it is
// refused after vouchFor, and admitted when it opens another stream and can be called back.
func TestVouch_APeerThatCannotBeCalledBackIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipes{}
		a, b := p.bind(t, "10.0.0.1:7"), p.serve(p.bind(t, "10.0.0.2:7"), Config{})
		begun := time.Now()
		_, err := p.open(t, b, a, plain)
		require.Equal(t, codes.Unauthenticated, status.Code(err), err)
		require.ErrorContains(t, err, "cannot be asked")
		require.Equal(t, 4*time.Second, time.Since(begun))
		require.EqualValues(t, 1, b.process.Refusals()["unproven"])
		require.Empty(t, b.guard.callers.calls)

		p.serve(a, Config{})
		s, err := p.open(t, b, a, a.guard.DialOptions()...)
		require.NoError(t, err)
		s.send(text(b, "hello"))
		b.hears("hello")
	})
}

// TestTLS_AConnectionOutlivesItsCertificate sends on a stream after the certificates of both ends
// have expired. No other connection can be opened with them.
func TestTLS_AConnectionOutlivesItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		papers, p := newPaper(t), pipes{}
		ca := papers.authority("right")
		short := pki.Member{Hosts: []string{"10.0.0.1", "10.0.0.2"},
			To: time.Now().Add(10 * time.Second)}
		a := p.serve(p.bind(t, "10.0.0.1:7"), Config{Files: papers.files(ca, short)})
		b := p.serve(p.bind(t, "10.0.0.2:7"), Config{Files: papers.files(ca, short)})
		s, err := p.open(t, b, a, a.guard.DialOptions()...)
		require.NoError(t, err)
		s.send(text(b, "in time"))
		b.hears("in time")

		time.Sleep(11 * time.Second)
		_, err = p.open(t, b, a, a.guard.DialOptions()...)
		require.ErrorContains(t, err, "expired")
		s.send(text(b, "too late"))
		b.hears("too late")
	})
}

// TestFiles_AreReadAtMostOnceASecond replaces files right after they were read.
func TestFiles_AreReadAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		papers := newPaper(t)
		old, next := papers.authority("old"), papers.authority("next")
		files, renewed := papers.files(old, here), papers.files(next, here)
		secrets := secretFile(t, ours)
		k, err := newKeeper(*files, &Process{})
		require.NoError(t, err)
		s, err := newSecret(secrets, &Process{})
		require.NoError(t, err)

		for from, to := range map[string]string{renewed.Cert: files.Cert, renewed.Key: files.Key,
			renewed.Authorities[0]: files.Authorities[0]} {
			require.NoError(t, os.Rename(from, to))
		}
		require.NoError(t, os.WriteFile(secrets, []byte(theirs+theirs), 0o600))
		read := func() (issuer, secret string) {
			return k.identity().cert.Leaf.Issuer.CommonName, string(s.secrets()[0])
		}
		time.Sleep(time.Second - 1)
		issuer, secret := read()
		require.Equal(t, "old", issuer)
		require.Equal(t, ours, secret)
		time.Sleep(time.Nanosecond)
		issuer, secret = read()
		require.Equal(t, "next", issuer)
		require.Equal(t, theirs+theirs, secret)
	})
}
