package silence

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers each line but "silent".
func server(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for lines := bufio.NewReader(c); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					if !strings.HasPrefix(line, "silent") {
						_, _ = io.WriteString(c, line)
					}
				}
			})
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, l *Links, address string) net.Conn {
	t.Helper()
	c, err := l.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a line, and waits for its answer.
func ask(t *testing.T, c net.Conn) error {
	t.Helper()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 6))
	return err
}

func TestLinks_SilentConnectionsAreClosed(t *testing.T) {
	for _, pool := range []bool{false, true} {
		address, l := server(t), &Links{Pool: pool}
		silent, idle, answered := dial(t, l, address), dial(t, l, address), dial(t, l, address)
		begun := time.Now()
		if _, err := io.WriteString(silent, "silent\n"); err != nil {
			t.Fatal(err)
		}
		if err := ask(t, answered); err != nil {
			t.Fatal(err)
		}
		l.leave(begun)
		if _, err := silent.Read(make([]byte, 1)); err == nil {
			t.Error("the silent connection is open")
		}
		if err := ask(t, idle); (err != nil) != pool {
			t.Errorf("pool %v, an idle connection: %v", pool, err)
		}
		if err := ask(t, answered); err != nil {
			t.Errorf("a connection that was answered: %v", err)
		}
	}
}

func TestWatch_ACallWithoutAnAnswerEndsInTime(t *testing.T) {
	l := &Links{}
	c := dial(t, l, server(t))
	// The deadline is that of a renewal, and not what ends the call.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	defer l.Watch(Patiently(ctx, 100*time.Millisecond))()
	if _, err := io.WriteString(c, "silent\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("an answer")
	}
}

func TestWatch_WithoutLinksOrDeadlineNothingIsWatched(t *testing.T) {
	var none *Links
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	none.Watch(ctx)()
	(&Links{}).Watch(t.Context())()
}
