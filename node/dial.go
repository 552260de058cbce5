package node

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

// closeFailed closes the connection of a stream that could not be opened, or has ended before its first message.
// Proto.Actor makes a connection for each attempt and forgets those that failed, which would go on dialing, with
// several goroutines each, for as long as the process lives.
func closeFailed(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		_ = cc.Close() // what matters is the error of the stream
		return nil, err
	}
	return &closing{ClientStream: stream, cc: cc}, nil
}

// closing is a stream whose connection nobody closes until the first message has come.
type closing struct {
	grpc.ClientStream
	cc       *grpc.ClientConn
	received atomic.Bool
}

// RecvMsg closes the connection if the first message does not come.
func (c *closing) RecvMsg(m any) error {
	err := c.ClientStream.RecvMsg(m)
	if err == nil {
		c.received.Store(true)
	} else if !c.received.Load() {
		_ = c.cc.Close() // what matters is the error of the stream
	}
	return err
}

// SendMsg closes the connection if it fails before a message has come.
func (c *closing) SendMsg(m any) error {
	err := c.ClientStream.SendMsg(m)
	if err != nil && !c.received.Load() {
		_ = c.cc.Close() // what matters is the error of the stream
	}
	return err
}
