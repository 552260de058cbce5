package node

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// connector opens the streams of remoting.
type connector struct {
	window time.Duration // how long one stream may take to open
}

// remotingMethod is the method of the streams that Proto.Actor opens.
const remotingMethod = "/remote.Remoting/Receive"

// open keeps trying to connect until the window ends, at the pace of redial. Proto.Actor alone
// pauses for two seconds after each failed attempt, and a network that is whole again would be
// noticed that much later. If the stream cannot be opened, or ends before its first message, its
// connection is closed: Proto.Actor creates a connection for each attempt and forgets the failed
// ones. They would keep dialing, with several goroutines each, for the lifetime of the process.
func (c connector) open(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
	method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	if method == remotingMethod {
		late := time.AfterFunc(c.window, cancel)
		defer late.Stop()
		opts = append(opts, grpc.WaitForReady(true))
	}
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		cancel()
		_ = cc.Close() // the error of the stream is the one to report
		return nil, err
	}
	return &closing{ClientStream: stream, cc: cc, cancel: cancel}, nil
}

// closing is a stream that closes its own connection if the stream fails before the first message
// arrives.
type closing struct {
	grpc.ClientStream
	cc       *grpc.ClientConn
	cancel   context.CancelFunc
	received atomic.Bool
}

// RecvMsg closes the connection if receiving the first message fails.
func (c *closing) RecvMsg(m any) error {
	err := c.ClientStream.RecvMsg(m)
	if err == nil {
		c.received.Store(true)
		return nil
	}
	c.cancel() // the stream has ended
	if !c.received.Load() {
		_ = c.cc.Close() // the error of the stream is the one to report
	}
	return err
}

// SendMsg closes the connection if it fails before a message has been received.
func (c *closing) SendMsg(m any) error {
	err := c.ClientStream.SendMsg(m)
	if err != nil && !c.received.Load() {
		_ = c.cc.Close() // the error of the stream is the one to report
	}
	return err
}
