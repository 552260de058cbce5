package hostile_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/testkit/pki"
)

// connections are attacks with streams and sockets.
func connections() []attack {
	return []attack{
		{"streams that say nothing", true, func(s *intruder) {
			for range 20 {
				cc := s.connect(s.w.victim())
				for range 10 {
					s.bare(cc)
				}
			}
		}},
		{"streams of one peer", false, func(s *intruder) {
			for range 2000 {
				s.open(s.w.victim(), s.address)
			}
		}},
		{"sockets that say nothing", false, func(s *intruder) { s.sockets(10_000, nil) }},
		{"sockets with garbage", true, func(s *intruder) {
			garbage := make([]byte, 4096)
			_, _ = rand.Read(garbage)
			s.sockets(100, garbage)
		}},
		{"HTTP/1", false, func(s *intruder) {
			s.sockets(100, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		}},
		{"half a preface", false, func(s *intruder) {
			s.sockets(300, []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n"))
		}},
		{"introduced twice", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 1000 {
				l.push(stranger.Introduce(s.address))
			}
			l.settle()
		}},
		{"in the name of everybody", true, func(s *intruder) {
			for _, p := range s.w.members {
				for range 20 {
					s.open(s.w.victim(), p.address).settle()
				}
			}
			for i := range 50 { // the called address does not answer
				s.open(s.w.victim(), fmt.Sprintf("127.0.0.1:%d", 1+i))
			}
		}},
		{"questions for streams", false, func(s *intruder) {
			cc := s.connect(s.w.victim())
			for i := range 300 {
				stream, err := cc.NewStream(s.t.Context(), &grpc.StreamDesc{ServerStreams: true,
					ClientStreams: true}, "/concord.v1.Guard/Vouch")
				if err != nil {
					return
				}
				question := append(make([]byte, 16), s.address...)
				_ = stream.SendMsg(question[:min(len(question), i)])
				var answer []byte
				if stream.RecvMsg(&answer) == nil {
					require.Equal(s.t, []byte{0}, answer, "it vouches for no stream but its own")
				}
			}
		}},
		{"a peer that does not read", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 3000 { // each is answered to a listener that never reads
				l.batch(stranger.Changed(stranger.Batch(s.w.victim().address, "nobody",
					wrapperspb.Bool(true)), func(b *remote.MessageBatch) {
					b.Senders = []*actor.PID{actor.NewPID(s.address, "x")}
					b.Envelopes[0].Sender = 1
				}))
			}
		}},
		{"certificates of others", true, certificates},
		{"a captured run of another cluster", false, replayed},
	}
}

// sockets opens n connections concurrently and sends data on each.
func (s *intruder) sockets(n int, data []byte) {
	var wg sync.WaitGroup
	room := make(chan struct{}, 64)
	for range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			c, err := net.DialTimeout("tcp", s.w.victim().address, time.Second)
			if err != nil {
				return
			}
			s.t.Cleanup(func() { _ = c.Close() })
			_, _ = c.Write(data)
		})
	}
	wg.Wait()
}

// certificates is the negative matrix of TLS: no certificate makes the stranger a peer. Members
// without TLS close the connections.
func certificates(s *intruder) {
	wrong, err := pki.NewAuthority("wrong")
	require.NoError(s.t, err)
	self, err := pki.NewAuthority("self")
	require.NoError(s.t, err)
	right := s.w.ca
	if right == nil {
		right = wrong
	}
	hosts := []string{"127.0.0.1"}
	past := time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		by *pki.Authority
		m  pki.Member
	}{
		"wrong authority": {wrong, pki.Member{Hosts: hosts}},
		"expired": {
			right, pki.Member{Hosts: hosts, From: past.Add(-time.Hour), To: past}},
		"another's address": {right, pki.Member{Hosts: hosts, Addresses: []string{"127.0.0.1:1"}}},
		"another's name":    {right, pki.Member{Hosts: []string{"localhost"}}},
		"a server's": {right, pki.Member{Hosts: hosts, Usages: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth}}},
		"nobody's":    {right, pki.Member{}},
		"self-signed": {self, pki.Member{Hosts: hosts}},
	} {
		cert, key, err := c.by.Issue(c.m)
		require.NoError(s.t, err)
		if c.by == self {
			cert = append(cert, self.PEM()...)
		}
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(s.t, err)
		cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
		other, _ := s.w.bystander()
		l := s.bare(s.connect(s.w.victim(), grpc.WithTransportCredentials(credentials.NewTLS(cfg))))
		l.push(stranger.Introduce(other.address))
		if l.ClientStream != nil {
			var answer []byte
			require.Error(s.t, l.RecvMsg(&answer), name)
		}
	}
}
