package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// accept passes a stream to Proto.Actor once its peer is proven, and then passes on only checked
// messages. It converts a panic into the end of the stream.
func (g *Guard) accept(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			g.process.refuse(internal, "remoting stream ended by a panic", r)
			err = status.Error(codes.Internal, "concord: internal error")
		}
	}()
	p, _ := peer.FromContext(ss.Context())
	auth, _ := p.AuthInfo.(*withConn)
	if auth != nil {
		auth.conn.streams.Add(1)
		defer auth.conn.streams.Add(-1)
	}
	if info.FullMethod == vouchMethod {
		return g.vouch(ss)
	}
	in := &incoming{ServerStream: ss, guard: g}
	if err := in.begin(p, auth); err != nil {
		return err
	}
	in.pace = g.paces.of(in.check.peer)
	defer g.paces.done(in.pace)
	return handler(srv, in)
}

// incoming is a stream that another member has opened.
type incoming struct {
	grpc.ServerStream
	guard *Guard
	check *checker
	pace  *pace
	first *remote.RemoteMessage // not passed on yet
	conn  *conn                 // nil in tests
	sure  bool                  // the peer is proven

	onwards *seal // nil: no secret
	sending sync.Mutex
	back    *seal
	nonce   nonce // for the first message back, if there is a secret
	greeted bool
}

// begin reads the first message, which names the peer's address, and verifies that address.
func (in *incoming) begin(p *peer.Peer, auth *withConn) error {
	g := in.guard
	f, err := inTime(g.cfg.Silence, func() (*frame, error) { return receive(in.ServerStream) })
	if err != nil {
		if errors.Is(err, errSlow) {
			g.process.refuse(badStream, "remoting stream", "nothing was sent")
		}
		return err
	}
	defer f.free()
	msg, address, err := g.introduction(f.data)
	if err != nil {
		g.process.refuse(badStream, "remoting stream", err)
		return status.Error(codes.InvalidArgument, "concord: "+err.Error())
	}
	self := g.self(p)
	if address == self {
		g.process.refuse(unproven, "remoting stream", "claims to be this member")
		return status.Error(codes.Unauthenticated, "concord: not this member")
	}
	if err := in.prove(f.data, auth, address, self); err != nil {
		why, code, level := unproven, codes.Unauthenticated, slog.LevelWarn
		switch {
		case errors.Is(err, errNobody):
			level = slog.LevelInfo // a member that is just ending, or has not begun to listen
		case errors.Is(err, errSeal):
			why = badSeal
		case errors.Is(err, errBusy):
			code = codes.ResourceExhausted
		}
		g.process.refuseAt(level, why, "remoting stream",
			fmt.Sprintf("of %.255q: %v", address, err))
		return status.Error(code, "concord: "+err.Error())
	}
	in.first, in.check = msg, newChecker(g, address, self)
	g.strangers.since(address, in.check.listed(), time.Now())
	if auth != nil {
		in.conn = auth.conn
		in.conn.idle.Stop()
	}
	if in.onwards == nil {
		in.proven()
	}
	in.taken(len(f.data))
	return nil
}

// proven records that the peer of the connection is proven. With a secret that is so once a second
// message has come: the first one can be a recorded one.
func (in *incoming) proven() {
	if !in.sure && in.conn != nil {
		in.conn.proven(in.check.peer)
	}
	in.sure = true
}

// taken records that a message is complete. Whoever has the secret, or else a member, may send more
// at a time than others.
func (in *incoming) taken(bytes int) {
	if in.conn != nil {
		in.conn.taken(bytes, in.sure && (in.guard.secret != nil || in.check.listed()))
	}
}

// introduction returns the address that the first message of a stream names.
func (g *Guard) introduction(data []byte) (*remote.RemoteMessage, string, error) {
	if len(data) > maxFirst {
		return nil, "", fmt.Errorf("the first message has %d bytes, at most %d", len(data),
			maxFirst)
	}
	if err := scan(data, 0); err != nil {
		return nil, "", fmt.Errorf("the first message must introduce its sender: %w", err)
	}
	msg := &remote.RemoteMessage{}
	if err := proto.Unmarshal(data, msg); err != nil {
		return nil, "", err
	}
	address := msg.GetConnectRequest().GetServerConnection().GetAddress()
	if !isAddress(address) {
		return nil, "", errors.New("the first message must introduce its sender")
	}
	return msg, address, nil
}

func isAddress(s string) bool {
	if len(s) > maxText {
		return false
	}
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && host != "" && n > 0 && n <= 65535
}

// self returns the address at which the peer reaches this member.
func (g *Guard) self(p *peer.Peer) string {
	if g.cfg.Advertised != "" || p.LocalAddr == nil {
		return g.cfg.Advertised
	}
	return p.LocalAddr.String()
}

// prove returns nil if the peer is the process that listens on address. See the package comment.
func (in *incoming) prove(data []byte, auth *withConn, address, self string) error {
	g := in.guard
	if g.secret != nil {
		if err := in.unseal(data, channel{g.process.cluster(), address, self}); err != nil {
			return err
		}
	}
	if g.keeper != nil {
		if auth == nil {
			return errors.New("no certificate")
		}
		c := peerCertificate(auth.AuthInfo)
		if c == nil {
			return errors.New("no certificate")
		}
		return Speaks(c, address)
	}
	if g.secret != nil {
		return nil
	}
	n, ok := nonceOf(data)
	if !ok {
		n = nonce{} // of an older version or a stranger: the member at the address decides
	}
	return g.callers.ask(in.Context(), address, self, n)
}

// unseal finds the secret with which the stream begins.
func (in *incoming) unseal(data []byte, c channel) error {
	theirs, ok := nonceOf(data)
	if !ok {
		return errSeal
	}
	for _, secret := range in.guard.secret.secrets() {
		if newSeal(secret, begins, c, theirs).check(data) == nil {
			in.nonce = newNonce()
			in.onwards = newSeal(secret, onwards, c, theirs, in.nonce)
			in.back = newSeal(secret, backwards, c, theirs, in.nonce)
			return nil
		}
	}
	return errSeal
}

// RecvMsg implements grpc.ServerStream. It is called by one goroutine of the stream.
func (in *incoming) RecvMsg(m any) error {
	msg, ok := m.(*remote.RemoteMessage)
	if !ok {
		return status.Error(codes.Internal, "concord: not a remoting message")
	}
	if in.first != nil {
		msg.MessageType, in.first = in.first.MessageType, nil
		return nil
	}
	for {
		f, err := receive(in.ServerStream)
		if err != nil {
			return err
		}
		size := len(f.data)
		b, err := in.open(f.data)
		f.free()
		in.taken(size)
		if err == nil {
			err = in.pace.wait(in.Context(), len(b.Envelopes), size)
		}
		if err != nil {
			return err
		}
		if len(b.Envelopes) > 0 {
			msg.MessageType = &remote.RemoteMessage_MessageBatch{MessageBatch: b}
			return nil
		}
	}
}

// open returns a batch with the messages that Proto.Actor may see.
func (in *incoming) open(data []byte) (*remote.MessageBatch, error) {
	p := in.guard.process
	if in.onwards != nil {
		if err := in.onwards.check(data); err != nil {
			p.refuse(badSeal, "remoting message", err)
			return nil, status.Error(codes.Unauthenticated, "concord: "+err.Error())
		}
		in.proven()
	}
	if err := in.bounds(data); err != nil {
		p.refuse(tooMuch, "remoting batch", err)
		return nil, status.Error(codes.InvalidArgument, "concord: "+err.Error())
	}
	msg := &remote.RemoteMessage{}
	if err := proto.Unmarshal(data, msg); err != nil {
		p.refuse(badBatch, "remoting batch", "cannot be decoded")
		return nil, status.Error(codes.InvalidArgument, "concord: cannot be decoded")
	}
	b := msg.GetMessageBatch()
	if b == nil {
		p.refuse(badStream, "remoting message", "not a batch")
		return nil, status.Error(codes.InvalidArgument, "concord: not a batch")
	}
	if err := checkIndices(b); err != nil {
		p.refuse(badBatch, "remoting batch", err)
		return nil, status.Error(codes.InvalidArgument, "concord: "+err.Error())
	}
	in.settle(b)
	in.check.filter(b)
	return b, nil
}

// settle waits for a short time until the peer is listed, if it has just appeared and the batch has
// messages that only members may send. Introductions do not wait.
func (in *incoming) settle(b *remote.MessageBatch) {
	left := in.guard.cfg.Settle - time.Since(in.guard.strangers.since(in.check.peer,
		in.check.listed(), time.Now()))
	if left <= 0 || !slices.ContainsFunc(b.Envelopes, func(e *remote.MessageEnvelope) bool {
		_, id := targetOf(b, int(e.Target))
		return b.TypeNames[e.TypeId] != envelopeName && !in.guard.public(id)
	}) {
		return
	}
	end := time.NewTimer(left)
	defer end.Stop()
	look := time.NewTicker(lookForMember)
	defer look.Stop()
	for !in.check.listed() {
		select {
		case <-look.C:
		case <-end.C:
			return
		case <-in.Context().Done():
			return
		}
	}
}

// lookForMember is the interval at which settle looks for the peer among the members.
const lookForMember = 20 * time.Millisecond

// bounds returns why a message must not be decoded, or nil.
func (in *incoming) bounds(data []byte) error {
	if len(data) > maxStrangeBatch && !in.check.listed() {
		return fmt.Errorf("more than %d bytes of a process that is not listed", maxStrangeBatch)
	}
	return scan(data, max(maxEnvelopes, in.guard.cfg.MaxEnvelopes))
}

// SendMsg seals the answers of this member.
func (in *incoming) SendMsg(m any) error {
	if in.back == nil {
		return in.ServerStream.SendMsg(m)
	}
	in.sending.Lock()
	defer in.sending.Unlock()
	msg, ok := m.(proto.Message)
	if !ok {
		return status.Error(codes.Internal, "concord: not a remoting message")
	}
	data, err := proto.Marshal(msg)
	if err != nil {
		return err
	}
	if !in.greeted {
		in.greeted = true
		data = appendNonce(data, in.nonce)
	}
	return in.ServerStream.SendMsg(&frame{data: in.back.put(data)})
}
