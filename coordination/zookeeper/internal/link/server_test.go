package link

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// server is a ZooKeeper server in memory, to the extent that a link needs one: it begins sessions,
// and answers pings, reads of a node and the end of a session.
type server struct {
	t       *testing.T
	granted time.Duration // session timeout; 0 stands for the requested one

	mu struct {
		sync.Mutex
		mute    bool     // answers no request
		deaf    bool     // does not even begin sessions
		expired bool     // refuses to resume sessions
		lazy    bool     // answers a request when the next one arrives
		kept    []byte   // the answer that it holds back
		got     []string // requests, by type
		zxid    uint64   // of the last answer, if answers raise it
		raises  bool
		from    []uint64 // where watches were set
		dialled int      // connections
		conns   []net.Conn
	}
}

// Types of requests, with the names that got uses.
var types = map[int32]string{3: "exists", 9: "sync", 11: "ping", -11: "close", 101: "watches"}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// requests returns how many requests of a type have arrived.
func (s *server) requests(of string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range s.mu.got {
		if t == of {
			n++
		}
	}
	return n
}

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.dialled
}

// cut closes all connections.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.conns {
		_ = c.Close()
	}
}

func (s *server) dial() net.Conn {
	near, far := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.dialled++
	s.mu.conns = append(s.mu.conns, far)
	go s.serve(far)
	return near
}

// serve answers one connection until it is closed.
func (s *server) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	hello, err := packet(c)
	if err != nil || s.begin(c, hello) != nil {
		return
	}
	for {
		request, err := packet(c)
		if err != nil {
			return
		}
		kind, known := types[int32(binary.BigEndian.Uint32(request[4:]))]
		if !known {
			s.t.Errorf("request of type %d", int32(binary.BigEndian.Uint32(request[4:])))
			return
		}
		if kind == "watches" {
			s.set(func() { s.mu.from = append(s.mu.from, binary.BigEndian.Uint64(request[8:])) })
		}
		if err := s.answer(c, kind, request[:4]); err != nil {
			return
		}
	}
}

// begin answers the first packet of a connection, which names the session to resume.
func (s *server) begin(c net.Conn, hello []byte) error {
	s.mu.Lock()
	deaf, expired := s.mu.deaf, s.mu.expired
	s.mu.Unlock()
	if deaf {
		_, _ = io.Copy(io.Discard, c)
		return io.EOF
	}
	timeout := binary.BigEndian.Uint32(hello[12:])
	if s.granted > 0 {
		timeout = uint32(s.granted.Milliseconds())
	}
	id := uint64(7)
	if resumes := binary.BigEndian.Uint64(hello[16:]) != 0; expired && resumes {
		timeout, id = 0, 0
	}
	answer := binary.BigEndian.AppendUint32(nil, 0) // version
	answer = binary.BigEndian.AppendUint32(answer, timeout)
	answer = binary.BigEndian.AppendUint64(answer, id)
	answer = binary.BigEndian.AppendUint32(answer, 16)
	return write(c, append(answer, make([]byte, 16)...)) // password
}

func (s *server) answer(c net.Conn, kind string, xid []byte) error {
	s.mu.Lock()
	if s.mu.raises {
		s.mu.zxid++
	}
	answer := binary.BigEndian.AppendUint64(slices.Clone(xid), s.mu.zxid)
	s.mu.Unlock()
	answer = binary.BigEndian.AppendUint32(answer, 0) // no error
	switch kind {
	case "exists":
		answer = append(answer, make([]byte, 68)...) // the node's stat
	case "sync":
		answer = append(answer, make([]byte, 4)...) // its path, empty
	}
	s.mu.Lock()
	s.mu.got = append(s.mu.got, kind)
	var due [][]byte
	switch {
	case s.mu.mute:
	case s.mu.lazy:
		if s.mu.kept != nil {
			due = [][]byte{s.mu.kept}
		}
		s.mu.kept = answer
	default:
		due = [][]byte{answer}
	}
	s.mu.Unlock()
	for _, a := range due {
		if err := write(c, a); err != nil {
			return err
		}
	}
	return nil
}

// packet reads a length and what follows.
func packet(c net.Conn) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	p := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(c, p)
	return p, err
}

func write(c net.Conn, p []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
	return err
}
