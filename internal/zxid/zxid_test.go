package zxid_test

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/zxid"
)

// link is one connection between a client and a server.
type link struct {
	t              *testing.T
	client, server net.Conn
}

func connect(t *testing.T, s *zxid.Seen) link {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return link{t, s.Conn(near), far}
}

// frame returns the numbers, 4 or 8 bytes each, after their length.
func frame(numbers ...any) []byte {
	body := make([]byte, 4)
	for _, n := range numbers {
		switch n := n.(type) {
		case int32:
			body = binary.BigEndian.AppendUint32(body, uint32(n))
		case uint64:
			body = binary.BigEndian.AppendUint64(body, n)
		}
	}
	binary.BigEndian.PutUint32(body, uint32(len(body)-4))
	return body
}

// sends returns what the server reads of a request.
func (l link) sends(request []byte) []byte {
	l.t.Helper()
	was := slices.Clone(request)
	go func() { _, _ = l.client.Write(request) }()
	got := make([]byte, len(request))
	_, err := io.ReadFull(l.server, got)
	require.NoError(l.t, err)
	require.Equal(l.t, was, request, "the client's own bytes")
	return got
}

// reads returns what the client reads of an answer that arrives byte by byte.
func (l link) reads(answer []byte) []byte {
	l.t.Helper()
	go func() {
		for i := range answer {
			_, _ = l.server.Write(answer[i : i+1])
		}
	}()
	got := make([]byte, len(answer))
	_, err := io.ReadFull(l.client, got[:4])
	require.NoError(l.t, err)
	_, err = io.ReadFull(l.client, got[4:])
	require.NoError(l.t, err)
	return got
}

// begin resumes a session, or begins one if it is 0, and returns the number that the server reads.
// The server answers with another session.
func (l link) begin(session, granted uint64) (last uint64) {
	l.t.Helper()
	got := l.sends(frame(int32(0), uint64(0), int32(9000), session, uint64(0)))
	answer := frame(int32(0), int32(9000), granted, uint64(0))
	require.Equal(l.t, answer, l.reads(answer))
	return binary.BigEndian.Uint64(got[8:])
}

// watch sets watches again, and returns the number that the server reads.
func (l link) watch(id int32) (from uint64) {
	l.t.Helper()
	got := l.sends(frame(id, int32(101), uint64(0), int32(0), int32(0), int32(0)))
	return binary.BigEndian.Uint64(got[12:])
}

// answer lets the server answer with a number, which the client must not see.
func (l link) answer(id int32, number uint64) {
	l.t.Helper()
	got := l.reads(frame(id, number, int32(0), uint64(42)))
	require.Equal(l.t, frame(id, uint64(0), int32(0), uint64(42)), got)
}

func TestWatches_AreSetFromBeforeTheReconnect(t *testing.T) {
	var seen zxid.Seen
	first := connect(t, &seen)
	require.Zero(t, first.begin(0, 7))
	first.answer(1, 50)
	first.answer(2, 60)

	second := connect(t, &seen)
	require.EqualValues(t, 60, second.begin(7, 7))
	second.answer(3, 70) // before the watches are set
	require.EqualValues(t, 60, second.watch(4))

	third := connect(t, &seen)
	require.EqualValues(t, 70, third.begin(7, 7))
	require.EqualValues(t, 60, third.watch(5), "the second may not have set them")
	third.answer(5, 80)
	third.answer(6, 90)

	fourth := connect(t, &seen)
	require.EqualValues(t, 90, fourth.begin(7, 7))
	require.EqualValues(t, 90, fourth.watch(7))
}

func TestSeen_IsForgottenWithTheSession(t *testing.T) {
	var seen zxid.Seen
	first := connect(t, &seen)
	first.begin(0, 7)
	first.answer(1, 50)
	require.EqualValues(t, 50, connect(t, &seen).begin(7, 0))
	require.Zero(t, connect(t, &seen).begin(0, 8))
}

func TestConn_LeavesEventsAndOtherRequests(t *testing.T) {
	var seen zxid.Seen
	c := connect(t, &seen)
	c.begin(0, 7)
	none := ^uint64(0)
	for _, event := range [][]byte{frame(int32(-1), none, int32(0), uint64(3)),
		frame(int32(-2), uint64(0), int32(0))} { // the answer to a ping
		require.Equal(t, event, c.reads(event))
	}
	for _, request := range [][]byte{frame(int32(-2), int32(11)),
		frame(int32(3), int32(4), uint64(9), uint64(9))} {
		require.Equal(t, request, c.sends(request))
	}
	require.Zero(t, connect(t, &seen).begin(7, 7))
}

func TestConn_RefusesAShortAnswer(t *testing.T) {
	c := connect(t, new(zxid.Seen))
	go func() { _, _ = c.server.Write(slices.Concat(frame(uint64(1)), frame(uint64(1)))) }()
	_, err := c.client.Read(make([]byte, 4))
	require.ErrorContains(t, err, "answer has 8 bytes, fewer than 16")
}
