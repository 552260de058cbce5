package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/internal/stranger"
)

// field appends a length-delimited field.
func field(b []byte, n protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), value)
}

// many returns a field repeated n times.
func many(number protowire.Number, value []byte, n int) []byte {
	return bytes.Repeat(field(nil, number, value), n)
}

// inBatch wraps the fields of a batch into a message.
func inBatch(b []byte) []byte { return field(nil, inRemoteMessageBatch, b) }

// greedy returns messages that decode to many times their size.
func greedy(size int) map[string][]byte {
	entry := func(i int) []byte {
		return field(nil, inHeaderData, field(nil, 1, fmt.Append(nil, i)))
	}
	var headers []byte
	for i := range size / 12 {
		headers = append(headers, entry(i)...)
	}
	return map[string][]byte{
		"envelopes": inBatch(many(inBatchEnvelopes, nil, size/2)),
		"types":     inBatch(many(inBatchTypes, nil, size/2)),
		"targets":   inBatch(many(inBatchTargets, nil, size/2)),
		"senders":   inBatch(many(inBatchSenders, nil, size/2)),
		"headers": inBatch(
			field(nil, inBatchEnvelopes, field(nil, inEnvelopeHeader, headers))),
		"headers everywhere": inBatch(
			many(inBatchEnvelopes, field(nil, inEnvelopeHeader, many(inHeaderData, nil, 60)),
				size/130)),
		"batches": many(inRemoteMessageBatch, many(inBatchEnvelopes, nil, 100),
			size/204),
		"messages of two kinds": bytes.Repeat([]byte{0x0a, 0, 0x12, 0}, size/4),
		"introductions":         bytes.Repeat([]byte{0x12, 0}, size/2),
		"peers in an introduction": field(nil, 2, bytes.Repeat([]byte{0x0a, 0, 0x12, 0},
			size/4)),
		"unknown fields":            bytes.Repeat([]byte{0x48, 1}, size/2),
		"unknown fields of a batch": inBatch(bytes.Repeat([]byte{0x48, 1}, size/2)),
		"unknown fields of an envelope": inBatch(field(nil, inBatchEnvelopes,
			bytes.Repeat([]byte{0x48, 1}, size/2))),
		"groups": bytes.Repeat(protowire.AppendTag(nil, 7, protowire.StartGroupType),
			size),
		"groups in a batch": inBatch(
			bytes.Repeat(protowire.AppendTag(nil, 7, protowire.StartGroupType), size)),
		"a long type":   inBatch(field(nil, inBatchTypes, make([]byte, maxText+1))),
		"a long sender": inBatch(field(nil, inBatchSenders, make([]byte, 3*maxText+1))),
	}
}

// inbound returns a stream of a peer at 127.0.0.1:7.
func inbound(g *Guard) *incoming {
	return &incoming{guard: g, check: newChecker(g, "127.0.0.1:7", "127.0.0.1:8")}
}

func quiet() *Process {
	p := &Process{}
	p.log.Store(slog.New(slog.DiscardHandler))
	return p
}

// trusting is quiet, and the peer of inbound is a member.
func trusting() *Process {
	p := quiet()
	p.see(map[string]string{"a": "127.0.0.1:7"})
	return p
}

// TestBounds_MemoryIsInProportion checks that decoding a message takes at most 16 times its size
// plus 1 MiB, and little time.
func TestBounds_MemoryIsInProportion(t *testing.T) {
	const size = 4 << 20
	g, err := New(Config{}, trusting())
	require.NoError(t, err)
	full := &remote.MessageBatch{TypeNames: []string{"google.protobuf.BoolValue"}}
	for range maxEnvelopes {
		full.Envelopes = append(full.Envelopes, &remote.MessageEnvelope{})
		full.Senders = append(full.Senders, &actor.PID{Address: "127.0.0.1:7"})
	}
	allowed, err := proto.Marshal(&remote.RemoteMessage{
		MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: full}})
	require.NoError(t, err)
	for name, data := range greedy(size) {
		taken := allocated(func() { _, err = inbound(g).open(data) })
		require.Error(t, err, name)
		require.Less(t, taken, uint64(len(data)+1<<20), name)
	}
	taken := allocated(func() { _, _ = inbound(g).open(allowed) })
	require.Less(t, taken, uint64(16*len(allowed)+1<<20), "the largest number that is allowed")
}

// TestBounds_EndTheirStreamOnly sends the greedy messages to a member, which must keep working.
func TestBounds_EndTheirStreamOnly(t *testing.T) {
	b := listen(t, Config{})
	for name, data := range greedy(64 << 10) {
		s := listen(t, Config{}).mustDial(b)
		require.NoError(t, s.ClientStream.(*outgoing).ClientStream.SendMsg(&frame{data: data}))
		require.Equal(t, codes.InvalidArgument, status.Code(s.ended()), name)
	}
	a := listen(t, Config{})
	a.mustDial(b).send(text(b, "hello"))
	b.hears("hello")
}

// TestBounds_AFullBatchPasses sends as many messages as Proto.Actor puts into one batch.
func TestBounds_AFullBatchPasses(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	s := a.mustDial(b)
	full := text(b, "one of many")
	for range 999 {
		full.Envelopes = append(full.Envelopes, full.Envelopes[0])
	}
	s.send(full)
	s.send(text(b, "behind it"))
	b.hears("behind it")
	require.Len(t, b.seen(), 1001)
}

// TestBatch_IndicesAreInRange tests the ends of each range: Proto.Actor indexes with these values.
func TestBatch_IndicesAreInRange(t *testing.T) {
	batch := func(change func(*remote.MessageEnvelope)) *remote.MessageBatch {
		b := &remote.MessageBatch{TypeNames: []string{"a", "b"}, Envelopes: []*remote.MessageEnvelope{
			{}, {}}}
		b.Targets = append(b.Targets, stranger.Batch("127.0.0.1:8", "x",
			wrapperspb.Bool(true)).Targets[0])
		b.Senders = append(b.Senders, actor.NewPID("127.0.0.1:7", "x"))
		change(b.Envelopes[1])
		return b
	}
	for name, c := range map[string]struct {
		set         func(e *remote.MessageEnvelope, n int32)
		first, last int32
	}{
		"type":       {func(e *remote.MessageEnvelope, n int32) { e.TypeId = n }, 0, 1},
		"target":     {func(e *remote.MessageEnvelope, n int32) { e.Target = n }, 0, 0},
		"sender":     {func(e *remote.MessageEnvelope, n int32) { e.Sender = n }, 0, 1},
		"serializer": {func(e *remote.MessageEnvelope, n int32) { e.SerializerId = n }, 0, 0},
	} {
		for n := c.first - 1; n <= c.last+1; n++ {
			err := checkIndices(batch(func(e *remote.MessageEnvelope) { c.set(e, n) }))
			if within := c.first <= n && n <= c.last; within {
				require.NoError(t, err, "%s %d", name, n)
			} else {
				require.ErrorContains(t, err, fmt.Sprintf("%s %d", name, n))
			}
		}
	}
	require.Error(t, checkIndices(&remote.MessageBatch{Envelopes: []*remote.MessageEnvelope{nil}}))
}

func TestStream_MustBegin(t *testing.T) {
	b := listen(t, Config{})
	huge := stranger.Introduce("127.0.0.1:7")
	huge.ProtoReflect().SetUnknown(protowire.AppendBytes(
		protowire.AppendTag(nil, nonceField+100, protowire.BytesType), make([]byte, maxFirst)))
	for name, m := range map[string]*remote.RemoteMessage{
		"empty":      {},
		"a batch":    stranger.Send(text(b, "x")),
		"no address": stranger.Introduce(""),
		"no port":    stranger.Introduce("127.0.0.1"),
		"long":       stranger.Introduce(string(bytes.Repeat([]byte("a"), maxText)) + ":1"),
		"huge":       huge,
	} {
		_, err := openWith(t, b, m)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", name, err)
	}
	require.Empty(t, b.seen())
}

// TestSilence_IsBounded covers connections and streams on which nothing is sent.
func TestSilence_IsBounded(t *testing.T) {
	p := newPaper(t)
	for _, cfg := range []Config{{}, {Files: p.files(p.authority("right"), here)}} {
		cfg.Silence = 50 * time.Millisecond
		b := listen(t, cfg)
		begun := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" // with settings
		for _, sent := range []string{"", begun[:16], begun, "\x16\x03\x01"} {
			c, err := memnet.Dial(t.Context(), "tcp", b.address)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			_, err = c.Write([]byte(sent))
			require.NoError(t, err)
			requireClosed(t, c)
		}
	}
	b := listen(t, Config{Silence: 50 * time.Millisecond})
	for _, method := range []string{"/remote.Remoting/Receive", vouchMethod} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		s, err := stranger.Dial(t, b.address, plain, inMemory).NewStream(ctx, &grpc.StreamDesc{
			ServerStreams: true, ClientStreams: true}, method)
		require.NoError(t, err)
		require.ErrorContains(t, s.RecvMsg(&remote.RemoteMessage{}), "nothing was sent", method)
	}
	require.EqualValues(t, 1, b.process.Refusals()["stream"])
}

// TestConns_TheOldestWithoutProofGoes checks that a peer that opens too many connections displaces
// its own.
func TestConns_TheOldestWithoutProofGoes(t *testing.T) {
	cs := newConns(func(string) bool { return true }, new(Process).refuseConn)
	var all []*conn
	var ends []net.Conn
	for range maxFresh + 10 {
		a, b := net.Pipe()
		all, ends = append(all, cs.add(a, time.Hour)), append(ends, b)
		if len(all) == 5 {
			all[4].proven("10.0.0.1:1")
		}
	}
	closed := func(c *conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(-time.Second))
		_, err := c.Read(make([]byte, 1))
		return errors.Is(err, io.ErrClosedPipe)
	}
	for i, c := range all {
		// 10 above the bound, except the proven one
		require.Equal(t, i < 10 && i != 4, closed(c), i)
	}
	for i := range all {
		_, _ = all[i].Close(), ends[i].Close()
		_ = all[i].Close()
	}
	require.Empty(t, cs.mu.open)
	require.Zero(t, cs.mu.fresh.Len())
}

// TestConns_APeerDisplacesItsOwn checks that a peer with many streams takes no connections from
// others, whether it is a member or not.
func TestConns_APeerDisplacesItsOwn(t *testing.T) {
	cs := newConns(func(address string) bool { return address[0] == 'm' }, new(Process).refuseConn)
	open := func(address string) *conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		c := cs.add(a, time.Hour)
		c.proven(address)
		return c
	}
	isClosed := func(c *conn) bool {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		return c.closed
	}
	member := open("m:1")
	for _, address := range []string{"m:2", "s:1"} {
		var mine []*conn
		for range maxPerPeer + 10 {
			mine = append(mine, open(address))
		}
		for i, c := range mine {
			require.Equal(t, i < 10, isClosed(c), "%s: %d", address, i)
		}
	}
	first := open("s:2")
	becomes := open("s:3")
	becomes.peer = "m:3" // as if it were listed since
	for i := range 2 * maxStrange {
		open(fmt.Sprint("s:", 1000+i))
	}
	require.True(t, isClosed(first), "strangers displace strangers")
	require.False(t, isClosed(becomes), "a peer that is a member by now stays")
	require.False(t, isClosed(member), "members stay")
	require.Equal(t, maxStrange, cs.mu.strange.Len())
	require.Len(t, cs.mu.open, 1+maxPerPeer+1+maxStrange)
	require.False(t, isClosed(open("m:4")), "there is room for members")
}

// TestConns_AreBounded has so many members that no connection is left for others.
func TestConns_AreBounded(t *testing.T) {
	cs := newConns(func(string) bool { return true }, new(Process).refuseConn)
	add := func() (c *conn, closed func() bool) {
		a, b := net.Pipe()
		c = cs.add(a, time.Hour)
		t.Cleanup(func() { _, _ = c.Close(), b.Close() })
		return c, func() bool {
			cs.mu.Lock()
			defer cs.mu.Unlock()
			return c.closed
		}
	}
	var last func() bool
	for i := range maxConns {
		var c *conn
		c, last = add()
		c.proven(fmt.Sprint("m:", 1+i/maxPerPeer))
	}
	_, fresh := add()
	require.True(t, fresh(), "one too many")
	require.False(t, last(), "members stay")
	require.Len(t, cs.mu.open, maxConns)
}

// TestHeld_BytesOfUnfinishedMessagesAreBounded sends bytes that do not complete a message.
func TestHeld_BytesOfUnfinishedMessagesAreBounded(t *testing.T) {
	p := quiet()
	cs := newConns(func(string) bool { return false }, p.refuseConn)
	open := func() (*conn, func(n int) error) {
		a, b := net.Pipe()
		c := cs.add(a, time.Hour)
		t.Cleanup(func() { _, _ = c.Close(), b.Close() })
		return c, func(n int) error {
			go func() { _, _ = b.Write(make([]byte, n)) }()
			_, err := io.ReadFull(c, make([]byte, n))
			return err
		}
	}
	c, sends := open()
	require.NoError(t, sends(maxHeld))
	c.taken(0, false)
	require.NoError(t, sends(maxHeld))
	require.ErrorIs(t, sends(1), errHeld)
	require.Zero(t, cs.held.Load())
	require.EqualValues(t, 1, p.counts[tooMuch].Load(), "operators are told")

	c, sends = open()
	c.streams.Store(2)
	require.NoError(t, sends(maxHeld))
	c.taken(5, false)
	require.ErrorIs(t, sends(6), errHeld, "the other stream holds the rest")

	c, sends = open()
	c.taken(0, true)
	require.NoError(t, sends(2*maxHeld), "a member")
	require.Zero(t, cs.held.Load())

	// All together: the one that holds most is closed.
	var all []func(int) error
	for range maxHeldByAll/(maxHeld/2) + 1 {
		_, sends := open()
		all = append(all, sends)
	}
	require.NoError(t, all[7](maxHeld*3/4))
	for i, sends := range all {
		if i != 7 {
			require.NoError(t, sends(maxHeld/2))
		}
	}
	require.Error(t, all[7](1), "it was closed")
	require.EqualValues(t, 3, p.counts[tooMuch].Load())
	require.LessOrEqual(t, cs.held.Load(), int64(maxHeldByAll))
}

// TestHeld_AConnectionWithoutAnIntroductionEnds closes a connection on which nothing is introduced.
func TestHeld_AConnectionWithoutAnIntroductionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := newConns(func(string) bool { return false }, new(Process).refuseConn)
		a, b := net.Pipe()
		defer b.Close()
		cs.add(a, time.Second)
		_, err := b.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Empty(t, cs.mu.open)
	})
}

// TestConns_OneOfManyStreamsOfAPeer opens streams as one peer until the oldest ends.
func TestConns_OneOfManyStreamsOfAPeer(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	oldest := a.mustDial(b)
	for i := range maxPerPeer {
		hello := fmt.Sprint("hello ", i)
		a.mustDial(b).send(text(b, hello))
		b.hears(hello)
	}
	require.Equal(t, codes.Unavailable, status.Code(oldest.ended()))
	a.mustDial(b).send(text(b, "the last"))
	b.hears("the last")
}

// TestStall_APeerThatDoesNotReadIsLeft covers a peer for which Proto.Actor would queue without
// bound.
func TestStall_APeerThatDoesNotReadIsLeft(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	b.sees(map[string]string{"a": a.address})
	a.guard.stall = 50 * time.Millisecond
	s := a.mustDial(b)
	b.mu.Lock() // blocks the receiver
	defer b.mu.Unlock()
	large := text(b, string(make([]byte, 1<<20)))
	for range 1000 {
		if err := s.SendMsg(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{
			MessageBatch: large}}); err != nil {
			require.Equal(t, codes.Canceled, status.Code(s.ended()))
			require.EqualValues(t, 1, a.process.Refusals()["bound"])
			return
		}
	}
	t.Fatal("everything was sent")
}

// TestScan_ReadsFieldsAsProtobufDoes compares the short way to read a field with protowire.
func TestScan_ReadsFieldsAsProtobufDoes(t *testing.T) {
	check := func(b []byte) {
		n, value, size, err := nextField(b)
		wantN, typ, want := protowire.ConsumeField(b)
		switch {
		case want < 0 || typ == protowire.StartGroupType:
			require.Error(t, err, "%x", b)
		default:
			require.NoError(t, err, "%x", b)
			require.Equal(t, wantN, n, "%x", b)
			require.Equal(t, want, size, "%x", b)
			require.Equal(t, typ == protowire.BytesType, value != nil, "%x", b)
			_, tag := protowire.ConsumeVarint(b)
			if inner, n := protowire.ConsumeBytes(b[tag:]); typ == protowire.BytesType && n > 0 {
				require.Equal(t, inner, value)
			}
		}
	}
	for first := range 256 {
		for second := range 256 {
			for _, rest := range []int{0, 1, 2, 9, 126, 127, 128, 300} {
				check(append([]byte{byte(first), byte(second)}, bytes.Repeat([]byte{1}, rest)...))
			}
		}
		check([]byte{byte(first)})
	}
}

// FuzzGuard checks that for any input from a peer nothing panics, memory is bounded, and accepted
// messages are safe for Proto.Actor's unchecked use.
func FuzzGuard(f *testing.F) {
	for _, data := range greedy(200) {
		f.Add(data)
	}
	for _, m := range []proto.Message{wrapperspb.Bool(true),
		&actor.Watch{Watcher: actor.NewPID("127.0.0.1:7", "x")}, &actor.Stop{}} {
		data, _ := proto.Marshal(&remote.RemoteMessage{
			MessageType: &remote.RemoteMessage_MessageBatch{
				MessageBatch: stranger.Batch("127.0.0.1:8", "x", m),
			}})
		f.Add(data)
	}
	intro, _ := proto.Marshal(stranger.Introduce("127.0.0.1:7"))
	f.Add(intro)
	g, err := New(Config{Public: []string{"x"}}, quiet())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, address, err := g.introduction(data); err == nil && !isAddress(address) {
			t.Errorf("introduced as %q", address)
		}
		_, _ = nonceOf(data)
		b, err := inbound(g).open(data)
		if err != nil {
			return
		}
		if err := checkIndices(b); err != nil {
			t.Error(err)
		}
		if len(b.Envelopes) > maxEnvelopes || len(b.Senders) > maxEnvelopes {
			t.Errorf("%d envelopes, %d senders", len(b.Envelopes), len(b.Senders))
		}
		for _, e := range b.Envelopes {
			if _, err := remote.Deserialize(e.MessageData, b.TypeNames[e.TypeId],
				e.SerializerId); err != nil {
				return // ends the stream
			}
		}
	})
}
