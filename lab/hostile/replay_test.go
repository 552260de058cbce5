package hostile_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recorder passes connections on to a member and keeps what they carry to it.
type recorder struct {
	to  string
	lis net.Listener
	all sync.WaitGroup

	mu    sync.Mutex
	runs  []*[]byte // what each connection carried
	conns []net.Conn
}

func record(t *testing.T, to string) *recorder {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &recorder{to: to, lis: lis}
	r.all.Go(r.serve)
	t.Cleanup(func() {
		_ = lis.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.all.Wait()
	})
	return r
}

func (r *recorder) serve() {
	for {
		in, err := r.lis.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		run := &[]byte{}
		r.runs, r.conns = append(r.runs, run), append(r.conns, in, out)
		r.mu.Unlock()
		r.all.Go(func() { _, _ = io.Copy(out, io.TeeReader(in, writer{r, run})); _ = out.Close() })
		r.all.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
	}
}

// writer appends to a run.
type writer struct {
	r   *recorder
	run *[]byte
}

func (w writer) Write(b []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	*w.run = append(*w.run, b...)
	return len(b), nil
}

// replayed records everything that the members of another cluster send to each other, which has
// the same secret or authority, and sends it again: to the cluster under attack, and to the cluster
// itself if its messages are sealed or encrypted.
func replayed(s *intruder) {
	var all []*recorder
	other := newCluster(s.t, &world{
		mode: s.w.mode, cluster: "other", dir: s.w.dir, ca: s.w.ca,
	}, func(address string) string {
		r := record(s.t, address)
		all = append(all, r)
		return r.lis.Addr().String()
	})
	var runs [][]byte
	for _, r := range all {
		r.mu.Lock()
		for _, run := range r.runs {
			runs = append(runs, append([]byte(nil), *run...))
		}
		r.mu.Unlock()
	}
	require.GreaterOrEqual(s.t, len(runs), size*(size-1), "each member has talked to each")
	members := s.w.members[:]
	if s.w.mode != plainMode { // an eavesdropper can act as a member of a cluster without either
		members = append(members, other.members[:]...)
	}
	var wg sync.WaitGroup
	for _, run := range runs {
		for _, m := range members {
			wg.Go(func() { replay(m.address, run) })
		}
	}
	wg.Wait()
	other.unharmed(s.t)
}

// replay sends a run, and waits until the member has closed the connection or says nothing more.
func replay(address string, run []byte) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write(run)
	for buf := make([]byte, 4096); ; {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		if _, err := c.Read(buf); err != nil {
			return
		}
	}
}
