package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/testkit/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for every expected event, however busy the machine is.
const patience = time.Minute

// end is one member, with the messages that Proto.Actor would see.
type end struct {
	t       testing.TB
	guard   *Guard
	process *Process
	address string
	lis     net.Listener

	mu  sync.Mutex
	got []string
}

// receiver takes the place of Proto.Actor.
type receiver struct {
	remote.UnimplementedRemotingServer
	*end
}

func (r receiver) Receive(s remote.Remoting_ReceiveServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		if m.GetConnectRequest() != nil {
			if err := s.Send(&remote.RemoteMessage{
				MessageType: &remote.RemoteMessage_ConnectResponse{
					ConnectResponse: &remote.ConnectResponse{},
				}}); err != nil {
				return err
			}
			continue
		}
		for _, e := range m.GetMessageBatch().GetEnvelopes() {
			r.note(m.GetMessageBatch().TypeNames[e.TypeId], e.MessageData)
		}
	}
}

func (e *end) note(typeName string, data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := typeName
	var text wrapperspb.StringValue
	if typeName == "google.protobuf.StringValue" && proto.Unmarshal(data, &text) == nil {
		s = text.Value
	}
	e.got = append(e.got, s)
}

func (e *end) seen() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.got...)
}

// inMemory lets a stream find the listeners of bind.
var inMemory = grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
	return memnet.Dial(ctx, "tcp", to)
})

// bind opens a member's listener before its guard exists, because the certificate names the
// address.
func bind(t testing.TB) *end {
	lis := memnet.Listen()
	return &end{t: t, lis: lis, address: lis.Addr().String(), process: &Process{}}
}

// serve starts the member.
func (e *end) serve(cfg Config) *end {
	if cfg.Public == nil {
		cfg.Public = []string{"x", "alive"} // what the tests send arrives, listed or not
	}
	g, err := New(cfg, e.process)
	require.NoError(e.t, err)
	g.CallWith(append(g.DialOptions(), inMemory))
	e.guard = g
	s := grpc.NewServer(append(g.ServerOptions(), grpc.MaxRecvMsgSize(64<<20))...)
	remote.RegisterRemotingServer(s, receiver{end: e})
	done := make(chan struct{})
	go func() { _ = s.Serve(e.lis); close(done) }()
	e.t.Cleanup(func() { s.Stop(); <-done })
	return e
}

func listen(t *testing.T, cfg Config) *end { return bind(t).serve(cfg) }

// stream is a stream opened by a member or a stranger.
type stream struct {
	t testing.TB
	grpc.ClientStream
}

// open opens a stream to another member and introduces the caller as from.
func open(t testing.TB, to *end, from string, options ...grpc.DialOption) (*stream, error) {
	return openWith(t, to, stranger.Introduce(from), options...)
}

// openWith opens a stream with any first message.
func openWith(t testing.TB, to *end, first *remote.RemoteMessage,
	options ...grpc.DialOption) (*stream, error) {
	s, err := stranger.Stream(t, stranger.Dial(t, to.address,
		append([]grpc.DialOption{inMemory}, options...)...))
	if err != nil {
		return nil, err
	}
	_ = s.SendMsg(first) // the answer carries the error
	var answer remote.RemoteMessage
	return &stream{t, s}, s.RecvMsg(&answer)
}

// dial opens a stream as a member.
func (e *end) dial(to *end) (*stream, error) {
	return open(e.t, to, e.address, e.guard.DialOptions()...)
}

func (e *end) mustDial(to *end) *stream {
	s, err := e.dial(to)
	require.NoError(e.t, err)
	return s
}

// send sends a batch; ended returns how the stream ends.
func (s *stream) send(b *remote.MessageBatch) {
	_ = s.SendMsg(stranger.Send(b))
}

// ended returns the reason for which the other end closed the stream.
func (s *stream) ended() error {
	var answer remote.RemoteMessage
	return s.RecvMsg(&answer)
}

func text(to *end, s string) *remote.MessageBatch {
	return stranger.Batch(to.address, "x", wrapperspb.String(s))
}

// hears waits until a message has arrived.
func (e *end) hears(want string) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		seen := e.seen()
		return len(seen) > 0 && seen[len(seen)-1] == want
	}, patience, time.Millisecond, want)
}

// paper issues certificates into a directory.
type paper struct {
	t   testing.TB
	dir string
	n   int
	mu  sync.Mutex
}

func newPaper(t testing.TB) *paper { return &paper{t: t, dir: t.TempDir()} }

func (p *paper) authority(name string) *pki.Authority {
	a, err := pki.NewAuthority(name)
	require.NoError(p.t, err)
	return a
}

func (p *paper) files(a *pki.Authority, m pki.Member, trust ...*pki.Authority) *Files {
	p.mu.Lock()
	p.n++
	name := fmt.Sprint(p.n)
	p.mu.Unlock()
	cert, key, err := a.WriteMember(p.dir, name, m)
	require.NoError(p.t, err)
	f := &Files{Cert: cert, Key: key}
	for _, t := range append(trust, a)[:max(len(trust), 1)] {
		file, err := t.Write(p.dir)
		require.NoError(p.t, err)
		f.Authorities = append(f.Authorities, file)
	}
	return f
}

func (p *paper) path(name string) string { return filepath.Join(p.dir, name) }

// roster is the membership as seen by a member.
type roster struct {
	view *membership.View
	lost []string
}

func (l roster) View() *membership.View { return l.view }
func (l roster) Lost() []string         { return l.lost }

// sees sets the other members that a member sees, by id; the only actor alive there is named alive.
func (e *end) sees(others map[string]string) { e.process.see(others) }

// see makes the members with these ids and addresses the view.
func (p *Process) see(others map[string]string) {
	v := &membership.View{Cluster: "shop"}
	for _, id := range slices.Sorted(maps.Keys(others)) {
		v.Members = append(v.Members, membership.Member{ID: id, Address: others[id],
			Incarnation: 1, Stamp: 1})
	}
	p.member.Store(&member{cluster: "shop", members: roster{view: v},
		lives: func(id string) bool { return id == "alive" },
		runs:  func(kind string) bool { return kind == "cart" },
	})
}

// requireClosed waits until the other end closes the connection.
func requireClosed(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, c)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "still open: %v", err)
}
