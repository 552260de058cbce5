package guard

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// passthrough makes gRPC dial an address without resolving it.
const passthrough = "passthrough:///"

// open guards the streams that this member opens.
func (g *Guard) open(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if method == vouchMethod {
		return streamer(ctx, desc, cc, method, opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	to := strings.TrimPrefix(cc.Target(), passthrough)
	return &outgoing{ClientStream: s, guard: g, to: to, nonce: newNonce(), cancel: cancel}, nil
}

// outgoing is a stream opened by this member.
type outgoing struct {
	grpc.ClientStream
	guard *Guard
	to    string // the address dialed
	nonce nonce

	cancel  context.CancelFunc // ends the stream
	stalled *time.Timer        // runs while a message is being sent; nil before the first

	secret []byte // the secret with which the stream began; nil: none
	from   string

	proved bool // a message has been sealed

	mu      sync.Mutex
	begun   bool
	onwards *seal // set once the other end has answered
	back    *seal
}

// SendMsg adds the nonce to the first message, and seals all messages if there is a secret.
// Proto.Actor sends a second message only after the first was answered.
func (o *outgoing) SendMsg(m any) error {
	msg, ok := m.(*remote.RemoteMessage)
	if !ok {
		return status.Error(codes.Internal, "concord: not a remoting message")
	}
	o.mu.Lock()
	begun := o.begun
	o.begun = true
	o.mu.Unlock()
	switch {
	case !begun:
		return o.introduce(msg)
	case o.onwards == nil:
		defer o.watch()()
		return o.ClientStream.SendMsg(m)
	}
	defer o.watch()()
	size := proto.Size(msg)
	if !o.proved {
		// The other end accepts a large message only after a sealed one.
		o.proved = true
		if size > maxUnproven {
			data, err := proto.Marshal(&remote.RemoteMessage{
				MessageType: &remote.RemoteMessage_MessageBatch{
					MessageBatch: &remote.MessageBatch{}}})
			if err != nil {
				return err
			}
			if err := o.ClientStream.SendMsg(&frame{data: o.onwards.put(data)}); err != nil {
				return err
			}
		}
	}
	lent := mem.DefaultBufferPool().Get(size + sealLength)
	data, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*lent)[:0], msg)
	if err != nil {
		return err
	}
	*lent = o.onwards.put(data)
	return o.ClientStream.SendMsg(&frame{lent: lent})
}

// maxUnproven is the largest message with which a sealed stream continues.
const maxUnproven = maxHeld / 4

// maxStall bounds how long a peer may take to accept one message. Proto.Actor queues without bound
// for a peer that does not read; when the stream ends, the queued messages become dead letters.
const maxStall = time.Minute

// watch ends the stream if a message is not accepted in time. It is called by the only sender.
func (o *outgoing) watch() (done func()) {
	if o.stalled == nil {
		o.stalled = time.AfterFunc(o.guard.stall, func() {
			o.guard.process.refuse(tooMuch, "remoting stream", "the peer does not read")
			o.cancel()
		})
	} else {
		o.stalled.Reset(o.guard.stall)
	}
	return func() { o.stalled.Stop() }
}

// introduce sends the first message, which names this member's address.
func (o *outgoing) introduce(msg *remote.RemoteMessage) error {
	o.from = msg.GetConnectRequest().GetServerConnection().GetAddress()
	data, err := proto.Marshal(msg)
	if err != nil {
		return err
	}
	data = appendNonce(data, o.nonce)
	if s := o.guard.secret; s != nil {
		o.secret = s.secrets()[0]
		data = newSeal(o.secret, begins, o.channel(), o.nonce).put(data)
	}
	o.guard.opened.add(o.nonce, o.to)
	if err := o.ClientStream.SendMsg(&frame{data: data}); err != nil {
		o.end()
		return err
	}
	return nil
}

func (o *outgoing) channel() channel { return channel{o.guard.process.cluster(), o.from, o.to} }

// RecvMsg checks the answers of the other end: that it accepts the stream, and that it leaves.
func (o *outgoing) RecvMsg(m any) error {
	err := o.receive(m)
	if err != nil {
		o.end()
	}
	return err
}

func (o *outgoing) end() {
	o.guard.opened.remove(o.nonce)
	o.cancel()
}

func (o *outgoing) receive(m any) error {
	msg, ok := m.(*remote.RemoteMessage)
	if !ok {
		return status.Error(codes.Internal, "concord: not a remoting message")
	}
	f, err := receive(o.ClientStream)
	if err != nil {
		return err
	}
	defer f.free()
	if o.secret != nil {
		if err := o.unseal(f.data); err != nil {
			o.guard.process.refuse(badSeal, "answer to a remoting stream", err)
			return status.Error(codes.Unauthenticated, "concord: "+err.Error())
		}
	}
	if err := scan(f.data, 0); err != nil {
		o.guard.process.refuse(tooMuch, "answer to a remoting stream", err)
		return status.Error(codes.InvalidArgument, "concord: "+err.Error())
	}
	return proto.Unmarshal(f.data, msg)
}

// unseal checks an answer. The first answer carries the nonce of the other end.
func (o *outgoing) unseal(data []byte) error {
	if o.back != nil {
		return o.back.check(data)
	}
	theirs, ok := nonceOf(data)
	if !ok {
		return errSeal
	}
	back := newSeal(o.secret, backwards, o.channel(), o.nonce, theirs)
	if err := back.check(data); err != nil {
		return err
	}
	o.back, o.onwards = back, newSeal(o.secret, onwards, o.channel(), o.nonce, theirs)
	return nil
}
