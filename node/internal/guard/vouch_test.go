package guard

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/internal/stranger"
)

var plain = grpc.WithTransportCredentials(insecure.NewCredentials())

// TestVouch_AMemberIsCalledBack checks that a member that confirms its stream is admitted.
func TestVouch_AMemberIsCalledBack(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	a.mustDial(b).send(text(b, "hello"))
	b.hears("hello")
	require.Equal(t, new(Process).Refusals(), b.process.Refusals())
}

// TestVouch_NobodySpeaksForAnother claims the address of a member that has opened no such stream.
func TestVouch_NobodySpeaksForAnother(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	for name, options := range map[string][]grpc.DialOption{
		"without a nonce": {plain},
		"with a nonce":    listen(t, Config{}).guard.DialOptions(),
	} {
		s, err := open(t, b, a.address, options...)
		require.Equal(t, codes.Unauthenticated, status.Code(err), "%s: %v", name, err)
		require.ErrorContains(t, err, errDenied.Error(), name)
		s.send(text(b, name))
	}
	_, err := open(t, b, b.address, plain)
	require.ErrorContains(t, err, "not this member")
	_, err = open(t, b, "not an address", plain)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Empty(t, b.seen())
	require.EqualValues(t, 3, b.process.Refusals()["unproven"])
}

// TestVouch_AMemberThatEndsIsNoFault claims an address where nobody listens, as a member does that
// has just stopped. It is refused, counted, and logged below WARN.
func TestVouch_AMemberThatEndsIsNoFault(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	var log bytes.Buffer
	b.process.log.Store(slog.New(slog.NewTextHandler(&log, nil)))
	free := memnet.Listen()
	require.NoError(t, free.Close())
	_, err := open(t, b, free.Addr().String(), a.guard.DialOptions()...)
	require.Equal(t, codes.Unauthenticated, status.Code(err), err)
	require.EqualValues(t, 1, b.process.Refusals()["unproven"])
	require.Contains(t, log.String(), "level=INFO")
	require.NotContains(t, log.String(), "level=WARN")
}

// TestVouch_TheStreamIsOne checks that a nonce that a member sent to one peer cannot be used with
// another.
func TestVouch_TheStreamIsOne(t *testing.T) {
	a, b, thief := listen(t, Config{}), listen(t, Config{}), listen(t, Config{})
	a.mustDial(thief)
	a.guard.opened.mu.Lock()
	require.Len(t, a.guard.opened.to, 1)
	var stolen nonce
	for n := range a.guard.opened.to {
		stolen = n
	}
	a.guard.opened.mu.Unlock()
	require.ErrorIs(t, b.guard.callers.ask(t.Context(), a.address, b.address, stolen), errDenied)
	require.NoError(t, thief.guard.callers.ask(t.Context(), a.address, thief.address, stolen))
}

// TestVouch_AStreamThatHasEndedIsNobodys checks that streams are forgotten when they end.
func TestVouch_AStreamThatHasEndedIsNobodys(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	s := a.mustDial(b)
	s.send(stranger.Changed(text(b, "x"), func(b *remote.MessageBatch) {
		b.Envelopes[0].Target = 7
	}))
	require.Equal(t, codes.InvalidArgument, status.Code(s.ended()))
	a.guard.opened.mu.Lock()
	defer a.guard.opened.mu.Unlock()
	require.Empty(t, a.guard.opened.to)
}

// TestVouch_AnotherServerConfirmsNothing covers an address at which a server of something else
// listens: any process could otherwise speak in its name.
func TestVouch_AnotherServerConfirmsNothing(t *testing.T) {
	other, b := bind(t), listen(t, Config{})
	s := grpc.NewServer()
	done := make(chan struct{})
	go func() { _ = s.Serve(other.lis); close(done) }()
	t.Cleanup(func() { s.Stop(); <-done })
	_, err := open(t, b, other.address, plain)
	require.Equal(t, codes.Unauthenticated, status.Code(err), err)
}

// TestVouch_ClaimantsDoNotKeepAMemberOut has many strangers claim the address of a member without
// a pause.
func TestVouch_ClaimantsDoNotKeepAMemberOut(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	var claims atomic.Int64
	var claimants sync.WaitGroup
	for range 64 {
		claimants.Go(func() {
			for ctx.Err() == nil {
				_ = b.guard.callers.ask(ctx, a.address, b.address, nonce{})
				claims.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return claims.Load() > 64 }, patience, time.Millisecond)
	for i := range 5 {
		before := claims.Load()
		a.mustDial(b).send(text(b, fmt.Sprint(i)))
		b.hears(fmt.Sprint(i))
		require.Less(t, claims.Load()-before, int64(1000), "claims that were answered before it")
	}
	cancel()
	claimants.Wait()
}

// TestVouch_CallsAreBounded checks that strangers get few calls, because they choose the address
// that is called.
func TestVouch_CallsAreBounded(t *testing.T) {
	b := listen(t, Config{})
	c := b.guard.callers
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var entered []string
	for i := range maxStrangers {
		address := "10.0.0.1:" + string(rune('1'+i%9)) + string(rune('0'+i/9))
		_, err := c.enter(address)
		require.NoError(t, err)
		entered = append(entered, address)
	}
	require.ErrorIs(t, c.ask(ctx, "10.0.0.2:1", b.address, nonce{}), errBusy)
	for range maxPerAddress - 1 {
		_, err := c.enter(entered[0])
		require.NoError(t, err)
	}
	_, err := c.enter(entered[0])
	require.ErrorIs(t, err, errBusy)
	for _, a := range entered {
		for k := c.calls[a]; k != nil && k.waiting > 0; {
			c.leave(a, k)
		}
	}
	require.Empty(t, c.calls)
	require.Zero(t, c.strangers)
}
