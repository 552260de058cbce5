package hostile_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
)

// floods consume memory, goroutines or time.
func floods() []attack {
	field := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	push := func(n int, m func() []byte) func(*intruder) {
		return func(s *intruder) {
			for range n {
				l := s.open(s.w.victim(), s.address)
				l.push(m())
				l.settle()
			}
		}
	}
	const much = 16 << 20
	return []attack{
		{"empty envelopes", true, push(4, func() []byte {
			return field(1, bytes.Repeat(field(3, nil), much/2))
		})},
		{"empty senders", false, push(4, func() []byte {
			return field(1, bytes.Repeat(field(4, nil), much/2))
		})},
		{"headers", false, push(4, func() []byte {
			return field(1, field(3, field(6, bytes.Repeat(field(1, nil), much/2))))
		})},
		{"groups in groups", false, push(4, func() []byte {
			return bytes.Repeat(protowire.AppendTag(nil, 7, protowire.StartGroupType), much/4)
		})},
		{"a message of tiny elements", true, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 4 {
				l.batch(stranger.Changed(stranger.Batch(s.w.victim().address, "door",
					&fieldmaskpb.FieldMask{}), func(b *remote.MessageBatch) {
					b.Envelopes[0].MessageData = bytes.Repeat(field(1, []byte("a")), much/4)
				}))
			}
			l.settle()
		}},
		{"a message beyond the largest", false, push(2, func() []byte {
			return make([]byte, 65<<20)
		})},
		{"forged senders", true, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for i := range 2000 {
				l.batch(stranger.Changed(stranger.Batch(s.w.victim().address, "nobody",
					wrapperspb.Bool(true)), func(b *remote.MessageBatch) {
					b.Senders = []*actor.PID{
						actor.NewPID(fmt.Sprintf("127.0.0.1:%d", 30_000+i), "x")}
					b.Envelopes[0].Sender = 1
				}))
			}
			l.settle()
		}},
		{"watches", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for i := range 100 {
				l.batch(s.watches(1000*i, 1000))
			}
			l.settle()
		}},
		{"watches on many streams", false, func(s *intruder) {
			for i := range 50 {
				l := s.open(s.w.victim(), s.address)
				l.batch(s.watches(4000*i, 4000))
				l.settle()
			}
		}},
		{"terminations everywhere", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for i := range 2000 {
				l.batch(stranger.Batch(s.w.victim().address, "door", &actor.Terminated{
					Who: actor.NewPID(fmt.Sprintf("127.0.0.1:%d", 30_000+i), "x"),
				}))
			}
			l.settle()
		}},
		{"messages for nobody", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 200 {
				full := stranger.Batch(s.w.victim().address, "nobody", wrapperspb.Bool(true))
				for range 199 {
					full.Envelopes = append(full.Envelopes, full.Envelopes[0])
				}
				l.batch(full)
			}
			l.settle()
		}},
	}
}

// memory are attacks that hold memory with calls that never end. The members are looked at while
// they are under way.
func memory() []attack {
	look := func(s *intruder) { require.NoError(s.t, s.w.asBefore()) }
	// dam is a connection on which no more than some bytes are sent.
	dam := func(bytes int64) grpc.DialOption {
		return grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil {
				return nil, err
			}
			d := &dammed{Conn: c, closed: make(chan struct{})}
			d.left.Store(bytes)
			return d, nil
		})
	}
	const each, streams = 30 << 20, 16
	unfinished := func(method string, introduced bool) func(*intruder) {
		return func(s *intruder) {
			cc := s.connect(s.w.victim(), dam(each*streams*9/10))
			for range streams {
				stream, err := cc.NewStream(s.t.Context(), &grpc.StreamDesc{ServerStreams: true,
					ClientStreams: true}, method)
				if err != nil {
					return
				}
				if introduced {
					_ = stream.SendMsg(stranger.Introduce(s.address))
				}
				go func() { _ = stream.SendMsg(make([]byte, each)) }()
			}
			for range 10 {
				time.Sleep(300 * time.Millisecond)
				look(s)
			}
		}
	}
	return []attack{
		{"unfinished calls", true, unfinished("/remote.Remoting/ListProcesses", false)},
		{"unfinished first messages", false, unfinished("/remote.Remoting/Receive", false)},
		{"unfinished messages", false, unfinished("/remote.Remoting/Receive", true)},
		{"compressed headers", true, func(s *intruder) {
			for range 4 {
				s.headers(250_000, 16)
			}
			for range 5 {
				look(s)
			}
		}},
	}
}

// dammed is a connection whose writes block after some bytes.
type dammed struct {
	net.Conn
	left   atomic.Int64
	once   sync.Once
	closed chan struct{}
}

// Write implements net.Conn.
func (d *dammed) Write(b []byte) (int, error) {
	if d.left.Add(-int64(len(b))) < 0 {
		<-d.closed
		return 0, net.ErrClosed
	}
	return d.Conn.Write(b)
}

// Close implements net.Conn.
func (d *dammed) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// headers opens streams on one connection, each with n header fields of one byte.
func (s *intruder) headers(n, streams int) {
	raw, err := net.Dial("tcp", s.w.victim().address)
	require.NoError(s.t, err)
	c := raw
	if s.w.mode == tlsMode {
		c = tls.Client(raw, &tls.Config{InsecureSkipVerify: true,
			NextProtos: []string{"h2"}})
	}
	s.t.Cleanup(func() { _ = c.Close() })
	go func() { _, _ = io.Copy(io.Discard, c) }()
	_, _ = io.WriteString(c, http2.ClientPreface)
	f := http2.NewFramer(c, nil)
	_ = f.WriteSettings()
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path",
		"/remote.Remoting/Receive"}, {":authority", "x"}, {"content-type", "application/grpc"},
		{"te", "trailers"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	all := append(head.Bytes(), bytes.Repeat([]byte{0x80 | 16}, n)...) // accept-encoding
	for i := range streams {
		id := uint32(2*i + 1)
		const frame = 16 << 10
		for at := 0; at < len(all); at += frame {
			part, last := all[at:min(at+frame, len(all))], at+frame >= len(all)
			if at == 0 {
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part,
					EndHeaders: last})
			} else {
				err = f.WriteContinuation(id, last, part)
			}
			if err != nil {
				return // the connection was closed
			}
		}
	}
}
