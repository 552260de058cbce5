package hostile_test

import (
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// await waits until f returns no error.
func await(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// others returns the members except one that is not the victim, and that one.
func (w *world) others() (rest []*process, one *process, was status) {
	one, was = w.bystander()
	for _, p := range w.members {
		if p != one {
			rest = append(rest, p)
		}
	}
	return rest, one, was
}

// TestFormer_AnswersAreNotForTheNextProcess kills a member with questions on their way, and starts
// another process at its address. The answers to the questions of the former one come while the
// next one asks its own.
func TestFormer_AnswersAreNotForTheNextProcess(t *testing.T) {
	w := newWorld(t, plainMode)
	_, one, _ := w.others()
	_, err := one.say("hold 100")
	require.NoError(t, err)
	await(t, func() error { // the questions have arrived when one that was asked later is answered
		s, err := one.status()
		if err == nil && s.Asked != "" {
			err = fmt.Errorf("%s", s.Asked)
		}
		return err
	})
	one.Kill()
	<-one.Gone()
	next := w.launch(one.spec, one.address)
	await(t, func() error {
		s, err := next.say("release 0")
		if err == nil && s.Ordinal == 0 {
			err = fmt.Errorf("not up")
		}
		return err
	})
	s, err := next.say("release 300")
	require.NoError(t, err)
	require.Empty(t, s.Asked)
}

// TestFormer_TheAddressOfADeadMemberProvesNothing has a stranger listen at the address of a member
// that was killed, before and after the others drop it. It knows what the member knew, except what
// only the member's process knows.
func TestFormer_TheAddressOfADeadMemberProvesNothing(t *testing.T) {
	w := newWorld(t, plainMode)
	rest, one, was := w.others()
	one.Kill()
	<-one.Gone()
	s := newIntruder(t, w)
	var lis net.Listener
	await(t, func() (err error) {
		lis, err = net.Listen("tcp", one.address)
		return err
	})
	s.address = stranger.ListenOn(t, lis, listener{s: s})
	for i := range uint64(150) { // longer than such claims must last
		for _, to := range rest {
			for _, id := range []string{"z", was.Self} {
				s.mu.Lock()
				permit := s.asked[w.incarnation(to)]
				s.mu.Unlock()
				h := &pb.Hello{Address: s.address, Sequence: 1<<40 + i, Stamp: 1,
					Size: math.MaxUint32, Oldest: 1, Arbiter: true, DroppedYou: true, Answer: true,
					Permit: permit}
				if id == was.Self {
					h.Stamp = was.Stamp
				}
				l := s.lane(to, id)
				l.batch(stranger.Batch(to.address, membershipActor, sealed(id, 7,
					w.incarnation(to), wire.MembershipHello, h)))
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, p := range rest {
		is, err := p.status()
		require.NoError(t, err)
		require.Equal(t, 1, is.Ordinal, "member at %s", p.address)
	}
}

// incarnation returns the incarnation that a member had at rest.
func (w *world) incarnation(p *process) uint64 {
	for i, m := range w.members {
		if m == p {
			return w.before[i].Incarnation
		}
	}
	return 0
}

// TestFormer_DeadMembersHealthPortDisplacesNobody has a stranger answer health requests at the
// port of a member that was killed, as a new member at the address of a living one.
func TestFormer_DeadMembersHealthPortDisplacesNobody(t *testing.T) {
	modes := []string{plainMode}
	if *whole {
		modes = []string{plainMode, secretMode, tlsMode}
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			rest, one, _ := w.others()
			one.Kill()
			<-one.Gone()
			var lis net.Listener
			await(t, func() (err error) {
				lis, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", one.spec.Health))
				return err
			})
			server := &http.Server{ReadHeaderTimeout: patience,
				ErrorLog: log.New(io.Discard, "", 0),
				Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
					_, _ = fmt.Fprintf(out, `{"id":"z","address":"127.0.0.1","port":%d,`+
						`"cluster_name":%q,"kinds":["grain"]}`, rest[0].spec.Port, w.cluster)
				})}
			done := make(chan struct{})
			go func() { defer close(done); _ = server.Serve(lis) }()
			defer func() { _ = server.Close(); <-done }()
			for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(
				200 * time.Millisecond) {
				for _, p := range rest {
					s, err := p.status()
					require.NoError(t, err)
					require.Equal(t, 1, s.Ordinal, "member at %s", p.address)
					require.NotContains(t, s.IDs, "z")
				}
			}
		})
	}
}
