package guard

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// frame is a message as bytes. The guard receives frames, so that it can decide before anything is
// decoded.
type frame struct {
	data []byte
	buf  mem.Buffer // holds data, if received
	lent *[]byte    // data, if it is sent and then returned to gRPC's pool
}

// free releases the bytes: nothing may refer to them any more.
func (f *frame) free() {
	if f.buf != nil {
		f.buf.Free()
		f.buf, f.data = nil, nil
	}
}

// codec is gRPC's own codec for sent messages, except that frames are passed through. It decodes
// only into frames.
type codec struct{}

// Name returns the name of gRPC's own codec, because it is part of the content type.
func (codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		if f.lent != nil {
			return mem.BufferSlice{mem.NewBuffer(f.lent, mem.DefaultBufferPool())}, nil
		}
		return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal implements encoding.CodecV2. The receiver frees the frame.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return nil // a unary call, which is rejected whatever its request
	}
	f.buf = data.MaterializeToBuffer(mem.DefaultBufferPool())
	f.data = f.buf.ReadOnlyData()
	return nil
}
