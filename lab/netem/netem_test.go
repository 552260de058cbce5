package netem_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/lab/netem"
)

// TestMain runs this binary as a server if the environment says so.
func TestMain(m *testing.M) {
	if addr := os.Getenv("CONCORD_ECHO"); addr != "" {
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			panic(err)
		}
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(c, c)
		return
	}
	goleak.VerifyTestMain(m)
}

// socket opens a UDP socket at a node.
func socket(t *testing.T, n *netem.Network, node int) net.PacketConn {
	var c net.PacketConn
	if err := n.Do(node, func() (err error) {
		c, err = net.ListenPacket("udp4", n.Addr(node)+":9000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.(*net.UDPConn).SetReadBuffer(1 << 20) // for a reader that may be slow
	return c
}

// pair is two nodes with a socket each, and a third node as a witness.
type pair struct {
	*testing.T
	*netem.Network
	a, b, c net.PacketConn
}

func newPair(t *testing.T) *pair {
	n := netem.New(t, 3)
	return &pair{t, n, socket(t, n, 0), socket(t, n, 1), socket(t, n, 2)}
}

// send sends one packet.
func (p *pair) send(from, to net.PacketConn, text string) {
	if _, err := from.WriteTo([]byte(text), to.LocalAddr()); err != nil {
		p.Error(err)
	}
}

// hear waits for one packet.
func (p *pair) hear(at net.PacketConn, want string) {
	buffer := make([]byte, 20)
	_ = at.SetReadDeadline(time.Now().Add(time.Minute))
	n, _, err := at.ReadFrom(buffer)
	if got := string(buffer[:n]); err != nil || got != want {
		p.Errorf("%q, %v; want %q", got, err, want)
	}
}

// taken waits until the relay has processed every packet sent at a node: it takes packets in order,
// and the link to the witness has no faults.
func (p *pair) taken(from net.PacketConn) {
	p.send(from, p.c, "witness")
	p.hear(p.c, "witness")
}

// burst sends numbered packets from a to b over a link, and heals the link when they must have
// arrived. It returns the numbers received before a final packet. A link delivers packets in the
// order of their arrival times, so nothing arrives later.
func (p *pair) burst(count int, link netem.Link) (got []uint32) {
	p.Helper()
	p.Set(0, 1, link)
	to, last := p.b.LocalAddr(), uint32(count)
	go func() {
		packet := make([]byte, 100)
		for i := range last {
			binary.BigEndian.PutUint32(packet, i)
			_, _ = p.a.WriteTo(packet, to)
		}
		p.taken(p.a)
		time.Sleep(link.Delay + link.Jitter) // all are due
		p.Set(0, 1, netem.Link{})
		binary.BigEndian.PutUint32(packet, last)
		_, _ = p.a.WriteTo(packet, to)
	}()
	buffer := make([]byte, 200)
	_ = p.b.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		n, _, err := p.b.ReadFrom(buffer)
		if err != nil || n != 100 {
			p.Fatalf("after %d packets: %d bytes, %v", len(got), n, err)
		}
		i := binary.BigEndian.Uint32(buffer)
		if i == last {
			return got
		}
		got = append(got, i)
	}
}

func (p *pair) between(what string, n, least, most int) {
	p.Helper()
	if n < least || n > most {
		p.Errorf("%s: %d, want %d to %d", what, n, least, most)
	}
}

func count(got []uint32) (different, overtaken int) {
	seen := map[uint32]bool{}
	last := uint32(0)
	for _, x := range got {
		seen[x] = true
		if x < last {
			overtaken++
		}
		last = max(last, x)
	}
	return len(seen), overtaken
}

func TestLink_Faults(t *testing.T) {
	p := newPair(t)
	const sent = 200
	for _, c := range []struct {
		name                  string
		link                  netem.Link
		arrive, differ, swaps [2]int
	}{
		{"perfect", netem.Link{}, [2]int{sent, sent}, [2]int{sent, sent}, [2]int{0, 0}},
		{"loss", netem.Link{Loss: 0.5}, [2]int{50, 150}, [2]int{50, 150}, [2]int{0, 0}},
		{"duplicates", netem.Link{Duplicate: 0.5}, [2]int{250, 350}, [2]int{sent, sent},
			[2]int{0, 0}},
		{"jitter reorders", netem.Link{Jitter: 200 * time.Millisecond}, [2]int{sent, sent},
			[2]int{sent, sent}, [2]int{20, sent}},
		{"corruption fails the checksum", netem.Link{Corrupt: 0.5}, [2]int{50, 150},
			[2]int{50, 150}, [2]int{0, 0}},
		{"cut", netem.Link{Cut: true}, [2]int{0, 0}, [2]int{0, 0}, [2]int{0, 0}},
		{"healed", netem.Link{}, [2]int{sent, sent}, [2]int{sent, sent}, [2]int{0, 0}},
	} {
		got := p.burst(sent, c.link)
		different, swaps := count(got)
		p.between(c.name+": packets", len(got), c.arrive[0], c.arrive[1])
		p.between(c.name+": different ones", different, c.differ[0], c.differ[1])
		p.between(c.name+": overtaken ones", swaps, c.swaps[0], c.swaps[1])
	}
}

// TestLink_OneWay cuts only the way back: requests arrive, answers do not.
func TestLink_OneWay(t *testing.T) {
	p := newPair(t)
	p.Set(1, 0, netem.Link{Cut: true})
	p.send(p.a, p.b, "request")
	p.hear(p.b, "request")
	p.send(p.b, p.a, "lost")
	p.taken(p.b)
	p.Set(1, 0, netem.Link{})
	p.send(p.b, p.a, "answer")
	p.hear(p.a, "answer")
}

func TestNetwork_IsolatedUntilHealed(t *testing.T) {
	p := newPair(t)
	p.Isolate(0)
	p.send(p.a, p.b, "lost")
	p.send(p.b, p.a, "lost")
	p.taken(p.b)
	p.Set(0, 2, netem.Link{})
	p.taken(p.a)
	p.Heal()
	p.send(p.a, p.b, "heard")
	p.send(p.b, p.a, "heard")
	p.hear(p.b, "heard")
	p.hear(p.a, "heard")
}

// TestProcess_TalksThroughTheRelay measures delay and rate with a real process over TCP.
func TestProcess_TalksThroughTheRelay(t *testing.T) {
	n := netem.New(t, 2)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	addr := n.Addr(1) + ":9001"
	cmd.Env = append(os.Environ(), "CONCORD_ECHO="+addr)
	cmd.Stderr = os.Stderr
	if err := n.Start(1, cmd); err != nil {
		t.Fatal(err)
	}
	var c net.Conn
	for deadline := time.Now().Add(time.Minute); c == nil; time.Sleep(20 * time.Millisecond) {
		if err := n.Do(0, func() (err error) {
			c, err = net.Dial("tcp4", addr)
			return err
		}); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer func() { _ = c.Close(); _ = cmd.Wait() }()
	echo := func(size int) time.Duration {
		start := time.Now()
		go func() { _, _ = c.Write(make([]byte, size)) }()
		if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	plain := echo(1)
	n.SetAll(netem.Link{Delay: 30 * time.Millisecond})
	if slow := echo(1); slow < 60*time.Millisecond {
		t.Errorf("round trip of %v with 30 ms each way", slow)
	}
	n.Heal()
	fast := echo(1 << 20)
	n.Set(0, 1, netem.Link{Rate: 2 << 20})
	limited := echo(1 << 20)
	if limited < 300*time.Millisecond {
		t.Errorf("1 MiB in %v at 2 MiB/s", limited)
	}
	t.Logf("round trip %v, 1 MiB both ways in %v, at 2 MiB/s in %v", plain, fast, limited)
}
