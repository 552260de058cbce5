package node

import (
	"context"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
)

// connector opens the streams of remoting.
type connector struct {
	window time.Duration // how much longer a stream may take to open whose first attempt has failed
	ends   *endings
}

// remotingMethod is the method of the streams that Proto.Actor opens.
const remotingMethod = "/remote.Remoting/Receive"

// open opens a stream. If an attempt fails, open keeps trying until the window ends, at the pace of
// redial. Proto.Actor alone pauses for two seconds after each failed attempt, and a network that is
// whole again, or a process that has just started at the address of another, would be noticed that
// much later.
//
// If the stream cannot be opened, or ends before its first message, its connection is closed:
// Proto.Actor creates a connection for each attempt and forgets the failed ones. They would keep
// dialing, with several goroutines each, for the lifetime of the process.
func (c connector) open(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
	method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	address := cc.Target()
	known := c.ends.begin(address)
	ctx, cancel := context.WithCancel(ctx)
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil && method == remotingMethod {
		late := time.AfterFunc(c.window, cancel)
		defer late.Stop()
		stream, err = streamer(ctx, desc, cc, method, append(opts, grpc.WaitForReady(true))...)
	}
	if err != nil {
		cancel()
		c.ends.end(address, known)
		_ = cc.Close() // the error of the stream is the one to report
		return nil, err
	}
	context.AfterFunc(stream.Context(), func() { c.ends.end(address, known) })
	return &closing{ClientStream: stream, cc: cc, cancel: cancel, ends: c.ends, known: known}, nil
}

// closing is a stream that closes its own connection if the stream fails before the first message
// arrives.
type closing struct {
	grpc.ClientStream
	cc       *grpc.ClientConn
	cancel   context.CancelFunc
	received atomic.Bool
	from     atomic.Pointer[string] // address of the system that has opened it; nil: not known yet
	ends     *endings
	known    *ending
}

// RecvMsg closes the connection if receiving the first message fails. A stream that was given up
// ends in order; see endings.
func (c *closing) RecvMsg(m any) error {
	err := c.ClientStream.RecvMsg(m)
	if err == nil {
		c.received.Store(true)
		return nil
	}
	c.cancel() // the stream has ended
	from := c.from.Load()
	switch {
	case !c.received.Load():
		_ = c.cc.Close() // the error of the stream is the one to report
	case from != nil && c.ends.by(*from, c.known):
		return io.EOF
	}
	return err
}

// SendMsg sends a large batch in pieces. It closes the connection if it fails before a message has
// been received.
func (c *closing) SendMsg(m any) error {
	if r, ok := m.(*remote.RemoteMessage); ok {
		if first := r.GetConnectRequest().GetServerConnection(); first != nil {
			from := first.GetAddress()
			c.from.Store(&from)
		}
	}
	for piece := range pieces(m) {
		err := c.ClientStream.SendMsg(piece)
		if err != nil && !c.received.Load() {
			_ = c.cc.Close() // the error of the stream is the one to report
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pieces splits a batch into batches of at most pieceSize bytes, or one message. Proto.Actor counts
// the messages of a batch, whatever their size, and loses all of them with the connection if they
// exceed the limit of the peer together.
func pieces(m any) iter.Seq[any] {
	return func(yield func(any) bool) {
		r, _ := m.(*remote.RemoteMessage)
		b := r.GetMessageBatch()
		first, size := 0, 0
		for i, e := range b.GetEnvelopes() {
			if i > first && size+len(e.MessageData) > pieceSize {
				if !yield(piece(b, first, i)) {
					return
				}
				first, size = i, 0
			}
			size += len(e.MessageData)
		}
		if first > 0 {
			m = piece(b, first, len(b.Envelopes))
		}
		yield(m)
	}
}

// piece returns a batch with the envelopes from first up to end, which refer to the lists of b.
func piece(b *remote.MessageBatch, first, end int) *remote.RemoteMessage {
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{
		MessageBatch: &remote.MessageBatch{TypeNames: b.TypeNames, Targets: b.Targets,
			Senders: b.Senders, Envelopes: b.Envelopes[first:end]},
	}}
}
