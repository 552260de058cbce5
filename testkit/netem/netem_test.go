package netem_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/testkit/netem"
)

// TestMain makes this binary a server if it was started as one.
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
	return c
}

// pair is two nodes with a socket each.
type pair struct {
	*testing.T
	*netem.Network
	a, b net.PacketConn
}

func newPair(t *testing.T) *pair {
	n := netem.New(t, 2)
	return &pair{t, n, socket(t, n, 0), socket(t, n, 1)}
}

// burst sends numbered packets from a to b, one each millisecond, and returns what arrives within the
// patience after the last.
func (p *pair) burst(count int, patience time.Duration) (got []uint32) {
	to, sent := p.b.LocalAddr(), make(chan time.Time, 1)
	go func() {
		packet := make([]byte, 100)
		for i := range count {
			binary.BigEndian.PutUint32(packet, uint32(i))
			_, _ = p.a.WriteTo(packet, to)
			time.Sleep(time.Millisecond)
		}
		sent <- time.Now()
	}()
	buffer := make([]byte, 200)
	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		_ = p.b.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, _, err := p.b.ReadFrom(buffer); err == nil && n == 100 {
			got = append(got, binary.BigEndian.Uint32(buffer))
		}
		select {
		case at := <-sent:
			end = at.Add(patience)
		default:
		}
	}
	return got
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
		{"duplicates", netem.Link{Duplicate: 0.5}, [2]int{250, 350}, [2]int{sent, sent}, [2]int{0, 0}},
		{"jitter reorders", netem.Link{Jitter: 50 * time.Millisecond}, [2]int{sent, sent}, [2]int{sent, sent}, [2]int{20, sent}},
		{"corruption fails the checksum", netem.Link{Corrupt: 0.5}, [2]int{50, 150}, [2]int{50, 150}, [2]int{0, 0}},
		{"cut", netem.Link{Cut: true}, [2]int{0, 0}, [2]int{0, 0}, [2]int{0, 0}},
		{"healed", netem.Link{}, [2]int{sent, sent}, [2]int{sent, sent}, [2]int{0, 0}},
	} {
		p.Set(0, 1, c.link)
		got := p.burst(sent, 150*time.Millisecond)
		different, swaps := count(got)
		p.between(c.name+": packets", len(got), c.arrive[0], c.arrive[1])
		p.between(c.name+": different ones", different, c.differ[0], c.differ[1])
		p.between(c.name+": overtaken ones", swaps, c.swaps[0], c.swaps[1])
	}
}

// TestLink_OneWay cuts the way back only: requests arrive, answers do not.
func TestLink_OneWay(t *testing.T) {
	p := newPair(t)
	p.Set(1, 0, netem.Link{Cut: true})
	p.between("there", len(p.burst(10, 100*time.Millisecond)), 10, 10)
	if _, err := p.b.WriteTo([]byte("answer"), p.a.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	_ = p.a.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, _, err := p.a.ReadFrom(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("back: %d bytes, %v", n, err)
	}
	p.Isolate(0)
	p.between("isolated", len(p.burst(10, 100*time.Millisecond)), 0, 0)
	p.Heal()
	p.between("healed", len(p.burst(10, 100*time.Millisecond)), 10, 10)
}

// TestProcess_TalksThroughTheRelay measures delay and rate with a real process behind TCP.
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
	for deadline := time.Now().Add(10 * time.Second); c == nil; time.Sleep(20 * time.Millisecond) {
		if err := n.Do(0, func() (err error) { c, err = net.Dial("tcp4", addr); return err }); err != nil && time.Now().After(deadline) {
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
