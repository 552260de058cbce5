package guard

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/stranger"
)

// secretFile writes the secrets to a file and returns its name.
func secretFile(t testing.TB, secrets ...string) string {
	f, err := os.CreateTemp(t.TempDir(), "secret")
	require.NoError(t, err)
	for _, s := range secrets {
		_, err := fmt.Fprintln(f, s)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	return f.Name()
}

const ours, theirs = "a secret of this cluster", "a secret of another cluster"

func TestSecret_MembersWithTheSameSecretTalk(t *testing.T) {
	file := secretFile(t, ours)
	a, b := listen(t, Config{Secret: file}), listen(t, Config{Secret: file})
	s := a.mustDial(b)
	for i := range 3 {
		s.send(text(b, fmt.Sprint(i)))
		b.hears(fmt.Sprint(i))
	}
	require.Equal(t, new(Process).Refusals(), b.process.Refusals())
}

func TestSecret_OthersAreNotHeard(t *testing.T) {
	b := listen(t, Config{Secret: secretFile(t, ours)})
	for name, a := range map[string]*end{
		"none":          listen(t, Config{}),
		"another":       listen(t, Config{Secret: secretFile(t, theirs)}),
		"other cluster": listen(t, Config{Secret: secretFile(t, ours)}),
	} {
		if name == "other cluster" {
			a.process.member.Store(&member{cluster: "other", members: roster{}})
		}
		_, err := a.dial(b)
		require.Equal(t, codes.Unauthenticated, status.Code(err), "%s: %v", name, err)
	}
	require.Empty(t, b.seen())
}

// A member reveals nothing to a peer without the secret.
func TestSecret_TheOtherEndHasItToo(t *testing.T) {
	a, b := listen(t, Config{Secret: secretFile(t, ours)}), listen(t, Config{})
	_, err := a.dial(b)
	require.Error(t, err)
	require.EqualValues(t, 1, a.process.Refusals()["seal"])
}

// TestSecret_IsReplaced replaces the secret while members talk: first all know both, then the old
// one is removed.
func TestSecret_IsReplaced(t *testing.T) {
	fa, fb := secretFile(t, ours), secretFile(t, ours)
	a, b := listen(t, Config{Secret: fa}), listen(t, Config{Secret: fb})
	write := func(file string, e *end, secrets string) {
		require.NoError(t, os.WriteFile(file, []byte(secrets), 0o600))
		e.guard.secret.looked.mu.Lock()
		e.guard.secret.looked.at = time.Time{}
		e.guard.secret.looked.mu.Unlock()
	}
	both := func(what string) {
		a.mustDial(b).send(text(b, what))
		b.hears(what)
		b.mustDial(a).send(text(a, what))
		a.hears(what)
	}
	both("old")
	s := a.mustDial(b)
	write(fa, a, ours+"\n"+theirs+"\n")
	both("one member knows the next one")
	write(fb, b, ours+"\n"+theirs+"\n")
	write(fa, a, theirs+"\n"+ours+"\n")
	both("one member sends with it")
	write(fb, b, theirs+"\n")
	both("the old one is gone at one member")
	write(fa, a, "short")
	both("a file that cannot be used is not")
	s.send(text(b, "on the stream that began with the old one"))
	b.hears("on the stream that began with the old one")
}

func TestSecret_FilesThatCannotBeUsed(t *testing.T) {
	secret := func(length int) string { return strings.Repeat("s", length) }
	for want, secrets := range map[string][]string{
		"holds no secret":         {"", "  "},
		"a secret has 15 bytes":   {secret(minSecret), secret(minSecret - 1)},
		"a secret has 1025 bytes": {secret(maxSecret + 1)},
		"more than 2 secrets":     {secret(minSecret), secret(maxSecret), secret(minSecret)},
	} {
		_, err := New(Config{Secret: secretFile(t, secrets...)}, &Process{})
		require.ErrorContains(t, err, want)
	}
	good := secretFile(t, secret(minSecret), "", secret(maxSecret))
	_, err := New(Config{Secret: good}, &Process{})
	require.NoError(t, err)
}

// tape records the frames of one end.
type tape struct {
	encoding.CodecV2
	frames *[][]byte
}

func (t tape) Marshal(v any) (mem.BufferSlice, error) {
	data, err := t.CodecV2.Marshal(v)
	if err == nil {
		*t.frames = append(*t.frames, data.Materialize())
	}
	return data, err
}

// raw is a codec that sends bytes unchanged.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return codec{}.Marshal(v)
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

// TestSecret_NothingIsReplayed records a stream and replays it to the same member and to others, in
// whole and in parts.
func TestSecret_NothingIsReplayed(t *testing.T) {
	file := secretFile(t, ours)
	a, b, c := listen(t, Config{Secret: file}), listen(t, Config{Secret: file}),
		listen(t, Config{Secret: file})
	var frames [][]byte
	options := append(a.guard.DialOptions(), grpc.WithDefaultCallOptions(
		grpc.ForceCodecV2(tape{codec{}, &frames})))
	s, err := open(t, b, a.address, options...)
	require.NoError(t, err)
	s.send(text(b, "pay"))
	b.hears("pay")
	s.send(text(b, "pay twice"))
	b.hears("pay twice")
	require.Len(t, frames, 3)

	play := func(to *end, frames ...[]byte) error {
		cc, err := grpc.NewClient("passthrough:///"+to.address, plain, inMemory, grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(raw{})))
		require.NoError(t, err)
		defer cc.Close()
		s, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true,
			ClientStreams: true}, "/remote.Remoting/Receive")
		require.NoError(t, err)
		for _, f := range frames {
			_ = s.SendMsg(f) // the way the stream ends is what counts
		}
		for {
			if err := s.RecvMsg(nil); err != nil {
				return err
			}
		}
	}
	flipped := append([]byte(nil), frames[0]...)
	flipped[3] ^= 1
	for name, frames := range map[string][][]byte{
		"whole": frames, "one twice": {frames[0], frames[1], frames[1]}, "the second alone": {
			frames[0], frames[2]},
		"no introduction": frames[1:], "the introduction twice": {frames[0], frames[0]},
		"a flipped bit": {flipped},
		"cut":           {frames[0][:len(frames[0])-1]},
	} {
		require.Error(t, play(b, frames...), name)
		require.Error(t, play(c, frames...), "%s, to another member", name)
	}
	require.Equal(t, []string{"pay", "pay twice"}, b.seen())
	require.Empty(t, c.seen())
}

// inside puts a stream between the guard, which seals, and the network.
func inside(wrap func(grpc.ClientStream) grpc.ClientStream) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc,
		cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	})
}

// middleman sends the messages of a stream, which begins with an introduction, in another order.
type middleman struct {
	grpc.ClientStream
	order  []int // indices of frames; the first is the introduction
	frames [][]byte
}

// SendMsg keeps the messages after the introduction until the last one is known.
func (m *middleman) SendMsg(v any) error {
	sent, err := codec{}.Marshal(v)
	if err != nil {
		return err
	}
	m.frames = append(m.frames, sent.Materialize())
	switch len(m.frames) {
	case 1:
		return m.ClientStream.SendMsg(&frame{data: m.frames[0]})
	case 3:
		for _, i := range m.order {
			if err := m.ClientStream.SendMsg(&frame{data: m.frames[i]}); err != nil {
				return nil //nolint:nilerr // the other end may have ended the stream
			}
		}
	}
	return nil
}

// TestSecret_AStreamIsAsItWasSent repeats, omits and swaps messages of a stream that is open.
func TestSecret_AStreamIsAsItWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		order []int
		heard []string
	}{
		"untouched": {[]int{1, 2}, []string{"pay", "pay twice"}},
		"repeated":  {[]int{1, 1, 2}, []string{"pay"}},
		"omitted":   {[]int{2}, nil},
		"swapped":   {[]int{2, 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := secretFile(t, ours)
			a, b := listen(t, Config{Secret: file}), listen(t, Config{Secret: file})
			options := append(a.guard.DialOptions(), inside(
				func(s grpc.ClientStream) grpc.ClientStream {
					return &middleman{ClientStream: s, order: c.order}
				}))
			s, err := open(t, b, a.address, options...)
			require.NoError(t, err)
			s.send(text(b, "pay"))
			s.send(text(b, "pay twice"))
			if name == "untouched" {
				b.hears("pay twice")
				require.Equal(t, c.heard, b.seen())
				return
			}
			require.NoError(t, s.CloseSend())
			require.Equal(t, codes.Unauthenticated, status.Code(s.ended()))
			require.Equal(t, c.heard, b.seen())
			require.EqualValues(t, 1, b.process.Refusals()["seal"])
		})
	}
}

// echo repeats the first answer on a stream.
type echo struct {
	grpc.ClientStream
	first []byte
}

func (e *echo) RecvMsg(v any) error {
	f := v.(*frame)
	if e.first != nil {
		f.data = e.first
		return nil
	}
	err := e.ClientStream.RecvMsg(v)
	e.first = bytes.Clone(f.data)
	return err
}

// TestSecret_AnswersAreAsTheyWereSent repeats an answer on a stream that is open.
func TestSecret_AnswersAreAsTheyWereSent(t *testing.T) {
	file := secretFile(t, ours)
	a, b := listen(t, Config{Secret: file}), listen(t, Config{Secret: file})
	options := append(a.guard.DialOptions(), inside(func(s grpc.ClientStream) grpc.ClientStream {
		return &echo{ClientStream: s}
	}))
	s, err := open(t, b, a.address, options...)
	require.NoError(t, err)
	require.Equal(t, codes.Unauthenticated, status.Code(s.ended()))
	require.EqualValues(t, 1, a.process.Refusals()["seal"])
}

// TestSecret_AReplayedIntroductionDisplacesNobody checks that the first message of a stream proves
// nothing on its own: it can be a recorded one.
func TestSecret_AReplayedIntroductionDisplacesNobody(t *testing.T) {
	file := secretFile(t, ours)
	a, b := listen(t, Config{Secret: file}), listen(t, Config{Secret: file})
	var frames [][]byte
	options := append(a.guard.DialOptions(), grpc.WithDefaultCallOptions(
		grpc.ForceCodecV2(tape{codec{}, &frames})))
	s, err := open(t, b, a.address, options...)
	require.NoError(t, err)
	s.send(text(b, "before"))
	b.hears("before")
	for range 2 * maxPerPeer {
		replayed, err := stranger.Stream(t, stranger.Dial(t, b.address, plain, inMemory,
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(stranger.Bytes{}))))
		require.NoError(t, err)
		require.NoError(t, replayed.SendMsg(frames[0]))
		var answer []byte
		require.NoError(t, replayed.RecvMsg(&answer))
	}
	s.send(text(b, "after"))
	b.hears("after")
	cs := b.guard.conns
	cs.mu.Lock()
	defer cs.mu.Unlock()
	require.Equal(t, 1, len(cs.mu.open)-cs.mu.fresh.Len())
}

// TestSeal_IsBound checks that a seal is bound to its number, direction, stream and cluster.
func TestSeal_IsBound(t *testing.T) {
	n := newNonce()
	here := channel{"shop", "a:1", "b:2"}
	msg, err := proto.Marshal(&remote.RemoteMessage{})
	require.NoError(t, err)
	sealed := newSeal([]byte(ours), onwards, here, n, n).put(msg)
	require.NoError(t, newSeal([]byte(ours), onwards, here, n, n).check(sealed))
	for name, s := range map[string]*seal{
		"secret":    newSeal([]byte(theirs), onwards, here, n, n),
		"direction": newSeal([]byte(ours), backwards, here, n, n),
		"cluster":   newSeal([]byte(ours), onwards, channel{"shop2", "a:1", "b:2"}, n, n),
		"from":      newSeal([]byte(ours), onwards, channel{"shop", "a:1b", ":2"}, n, n),
		"to":        newSeal([]byte(ours), onwards, channel{"shop", "a:1", "b:3"}, n, n),
		"nonce":     newSeal([]byte(ours), onwards, here, n, newNonce()),
	} {
		require.ErrorIs(t, s.check(sealed), errSeal, name)
	}
	s := newSeal([]byte(ours), onwards, here, n, n)
	require.NoError(t, s.check(sealed))
	require.ErrorIs(t, s.check(sealed), errSeal, "the same again")
	require.ErrorIs(t, newSeal([]byte(ours), onwards, here, n, n).check(nil), errSeal)
}
