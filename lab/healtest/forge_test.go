//go:build linux

package healtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/node"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/testkit/pki"
)

// What members prove themselves with, while a stranger at each member's host forges messages.
const (
	withSecret = "secret"
	withTLS    = "tls"
)

// identify prepares the secret of the cluster, or the certificate of member i.
func (c *members) identify(i int, s *spec) {
	var err error
	switch c.forged {
	case withSecret:
		s.Secret = filepath.Join(c.dir, "secret")
		err = os.WriteFile(s.Secret, []byte("the secret of this cluster\n"), 0o600)
	case withTLS:
		if c.authority == nil {
			if c.authority, err = pki.NewAuthority("heal"); err != nil {
				break
			}
		}
		s.TLS = &node.TLS{}
		if s.TLS.Authorities = []string{""}; err == nil {
			s.TLS.Authorities[0], err = c.authority.Write(c.dir)
		}
		if err == nil {
			s.TLS.Cert, s.TLS.Key, err = c.authority.WriteMember(c.dir, s.Name,
				pki.Member{Hosts: []string{c.hosts[i]}})
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// Lines of the log of a stranger.
const (
	forgedLine   = "messages were forged"
	acceptedLine = "a forged stream was accepted"
)

// forge sends forged messages to all members in the name of each of them, as a stranger at the
// host of this member that knows everything except the secret or a key.
func (m *member) forge(ctx context.Context, log *slog.Logger) {
	sent := 0
	defer func() { log.Info(forgedLine, slog.Int("streams", sent)) }()
	for ctx.Err() == nil {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		n := m.system.Load()
		if n == nil {
			continue
		}
		v := membership.Attach(n.System).View()
		if v == nil {
			continue
		}
		for _, to := range m.Hosts {
			for _, of := range v.Members {
				at := fmt.Sprintf("%s:%d", to, memberPort)
				if sent++; admitted(ctx, at, of) {
					log.Error(acceptedLine, slog.String("to", at), slog.String("of", of.Address))
				}
			}
		}
	}
}

// admitted sends the messages that would move a member, and reports whether the member at address
// answers.
func admitted(ctx context.Context, address string, of membership.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cc, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	defer cc.Close()
	s, err := remote.NewRemotingClient(cc).Receive(ctx)
	if err != nil {
		return false
	}
	ours := func(m wire.Manifest, payload proto.Message) proto.Message {
		data, _ := proto.Marshal(payload)
		return wire.Seal(wire.Header{Cluster: "heal", Member: of.ID, From: of.Incarnation}, m, data)
	}
	_ = s.Send(stranger.Introduce(of.Address)) // the answer tells whether it was accepted
	for id, m := range map[string]proto.Message{
		"concord-membership": ours(wire.MembershipHello, &pb.Hello{Address: of.Address,
			Sequence: 1 << 41, Stamp: of.Stamp, Leaving: true}),
		"concord-singleton-worker": &actor.Terminated{Who: actor.NewPID(address,
			"concord-singleton-worker/1-1")},
		"concord-singleton-proxy-worker": ours(wire.SingletonHost, &pb.SingletonHost{Round: 1,
			Token: math.MaxUint64}),
	} {
		_ = s.Send(stranger.Send(stranger.Batch(address, id, m)))
	}
	_, err = s.Recv()
	return err == nil
}

// nothingForged checks that strangers forged messages, and that no member accepted a stream.
func nothingForged(c *members) {
	forged := 0
	logs, err := filepath.Glob(filepath.Join(c.dir, "*.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, forgedLine) {
				forged++
			}
			if strings.Contains(line, acceptedLine) {
				c.t.Errorf("%s: %s", name, line)
			}
		}
	}
	if forged == 0 {
		c.t.Error("nobody forged messages")
	}
}
