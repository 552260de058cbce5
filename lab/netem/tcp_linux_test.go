package netem_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/concord-go/concord/lab/netem"
)

// stream is a TCP connection from node 0 to node 1.
type stream struct {
	testing.TB
	*netem.Network
	a, b *net.TCPConn
}

func newStream(t testing.TB) *stream {
	s := &stream{TB: t, Network: netem.New(t, 2)}
	var l net.Listener
	err := s.Do(1, func() (err error) {
		l, err = net.Listen("tcp4", s.Addr(1)+":9002")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = s.Do(0, func() error {
		c, err := net.DialTimeout("tcp4", l.Addr().String(), time.Minute)
		if err == nil {
			s.a = c.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.a.Close() })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s.b = c.(*net.TCPConn)
	t.Cleanup(func() { _ = s.b.Close() })
	return s
}

// carry sends bytes and waits until the other end has received them.
func (s *stream) carry(from, to *net.TCPConn, data []byte) {
	s.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		sent <- err
	}()
	h := sha256.New()
	_ = to.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := io.CopyN(h, to, int64(len(data))); err != nil {
		s.Fatalf("after %d bytes: %v", n, err)
	}
	if err := <-sent; err != nil {
		s.Fatal(err)
	}
	if want := sha256.Sum256(data); !bytes.Equal(h.Sum(nil), want[:]) {
		s.Error("other bytes than were sent")
	}
}

// seen returns the kernel's counters of a connection.
func (s *stream) seen(c *net.TCPConn) (info *unix.TCPInfo) {
	s.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			info, _ = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		})
	}
	if err != nil || info == nil {
		s.Fatalf("TCP_INFO: %v", err)
	}
	return info
}

func noise(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// TCP delivers its data intact over faulty links, in both directions. The kernel's counters show
// that each fault occurred, and only in the intended direction.
func TestTCP_IsWholeThroughEveryFault(t *testing.T) {
	retransmits := func(from, _ *unix.TCPInfo) uint32 { return from.Total_retrans }
	for _, c := range []struct {
		name  string
		link  netem.Link
		count func(from, to *unix.TCPInfo) uint32
	}{
		{"loss", netem.Link{Loss: 0.05}, retransmits},
		{"corruption", netem.Link{Corrupt: 0.05}, retransmits},
		{"duplicates", netem.Link{Duplicate: 0.5}, func(from, _ *unix.TCPInfo) uint32 {
			return from.Dsack_dups
		}},
		{"reordering", netem.Link{Jitter: 5 * time.Millisecond}, func(_, to *unix.TCPInfo) uint32 {
			return to.Rcv_ooopack
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(t)
			data := noise(1 << 20)
			s.carry(s.a, s.b, data)
			before := c.count(s.seen(s.a), s.seen(s.b))
			s.Set(0, 1, c.link)
			s.carry(s.a, s.b, data)
			there := c.count(s.seen(s.a), s.seen(s.b)) - before
			if there == 0 {
				t.Error("no sign of it in the direction meant")
			}
			s.Set(0, 1, netem.Link{})
			s.Set(1, 0, c.link)
			before = c.count(s.seen(s.b), s.seen(s.a))
			s.carry(s.b, s.a, data)
			back := c.count(s.seen(s.b), s.seen(s.a)) - before
			if back == 0 {
				t.Error("no sign of it in the other direction")
			}
			t.Logf("%d there, %d back, of about %d segments", there, back, len(data)/1448)
		})
	}
}

// A cut of the way back lets data through and drops its acknowledgements.
func TestTCP_CutOfOneDirection(t *testing.T) {
	s := newStream(t)
	hear := func(at *net.TCPConn, want byte) {
		t.Helper()
		got := make([]byte, 1)
		_ = at.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(at, got); err != nil || got[0] != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	send := func(from *net.TCPConn, b byte) {
		t.Helper()
		if _, err := from.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	s.Set(1, 0, netem.Link{Cut: true})
	send(s.a, 'r')
	hear(s.b, 'r')
	send(s.b, 'l') // it keeps retrying
	if n := s.seen(s.a).Unacked; n != 1 {
		t.Errorf("%d segments are not acknowledged, want 1", n)
	}
	s.Set(1, 0, netem.Link{})
	hear(s.a, 'l')

	s.Set(0, 1, netem.Link{Cut: true})
	send(s.b, 'l')
	hear(s.a, 'l')
	send(s.a, 'r')
	if n := s.seen(s.b).Unacked; n == 0 {
		t.Error("what was sent against the cut is acknowledged")
	}
	s.Heal()
	hear(s.b, 'r')
}

// BenchmarkTCP measures the relay's throughput in one direction.
func BenchmarkTCP(b *testing.B) {
	s := newStream(b)
	data := noise(1 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		s.carry(s.a, s.b, data)
	}
}
