package node

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

// closeFailed closes the connection of a stream that could not be opened or that ended before its
// first message. Proto.Actor creates a connection for each attempt and forgets the failed ones.
// Without closeFailed they would keep dialing, with several goroutines each, for the lifetime of
// the process.
func closeFailed(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		_ = cc.Close() // the error of the stream is the one to report
		return nil, err
	}
	return &closing{ClientStream: stream, cc: cc}, nil
}

// closing is a stream that closes its own connection if the stream fails before the first message
// arrives.
type closing struct {
	grpc.ClientStream
	cc       *grpc.ClientConn
	received atomic.Bool
}

// RecvMsg closes the connection if receiving the first message fails.
func (c *closing) RecvMsg(m any) error {
	err := c.ClientStream.RecvMsg(m)
	if err == nil {
		c.received.Store(true)
	} else if !c.received.Load() {
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
