package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// vouchMethod is the call that asks a member whether a stream is its own. The request is the nonce
// of the stream and the address of the asking member, the answer one byte.
const vouchMethod = "/concord.v1.Guard/Vouch"

const (
	// vouchFor bounds one call. Proto.Actor tries to connect again after two seconds.
	vouchFor = 4 * time.Second
	// maxCalls bounds concurrent calls. Strangers get only a part of them, since they choose which
	// address this member calls.
	maxCalls      = 256
	maxStrangers  = 16
	maxPerAddress = maxFresh // streams waiting for the answer of one address, in order of arrival
)

// opened holds the addresses of the streams that this member has opened, by nonce.
type opened struct {
	mu sync.Mutex
	to map[nonce]string
}

func (o *opened) add(n nonce, to string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to[n] = to
}

func (o *opened) remove(n nonce) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.to, n)
}

func (o *opened) has(n nonce, to string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to[n] == to && to != ""
}

// vouch answers a member that asks whether a stream was opened by this member.
func (g *Guard) vouch(ss grpc.ServerStream) error {
	f, err := inTime(g.cfg.Silence, func() (*frame, error) { return receive(ss) })
	if err != nil {
		return err
	}
	defer f.free()
	var n nonce
	if len(f.data) < len(n) || len(f.data) > len(n)+maxText {
		g.process.refuse(badCall, "vouch call", "wrong length")
		return status.Error(codes.InvalidArgument, "concord: not a nonce and an address")
	}
	copy(n[:], f.data)
	answer := []byte{0}
	if g.opened.has(n, string(f.data[len(n):])) {
		answer[0] = 1
	}
	return ss.SendMsg(&frame{data: answer})
}

// receive returns the next message as bytes.
func receive(s interface{ RecvMsg(any) error }) (*frame, error) {
	f := &frame{}
	if err := s.RecvMsg(f); err != nil {
		return nil, err
	}
	return f, nil
}

var errSlow = status.Error(codes.DeadlineExceeded, "concord: nothing was sent")

// inTime bounds the wait for the first message of a stream. The goroutine that receives it returns
// when the stream ends.
func inTime(silence time.Duration, f func() (*frame, error)) (*frame, error) {
	type result struct {
		f   *frame
		err error
	}
	done := make(chan result, 1)
	go func() {
		f, err := f()
		done <- result{f, err}
	}()
	timer := time.NewTimer(silence)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.f, r.err
	case <-timer.C:
		return nil, errSlow
	}
}

// callers asks the members whose addresses streams claim. There is one call to an address at a
// time, so that claims in its name cost that member little.
type callers struct {
	guard *Guard

	mu        sync.Mutex
	calls     map[string]*call // by address
	strangers int              // how many of them are addresses of non-members
}

type call struct {
	turn     chan struct{}    // semaphore: the holder of its one token calls
	cc       *grpc.ClientConn // used by that holder; nil: none
	waiting  int
	stranger bool // the address does not belong to a member
}

var (
	errDenied = errors.New("the member at this address has not opened the stream")
	errBusy   = errors.New("too many streams wait to be verified")
)

// ask returns nil if the member at address confirms that the stream is its own.
func (c *callers) ask(ctx context.Context, address, self string, n nonce) error {
	k, err := c.enter(address)
	if err != nil {
		return err
	}
	defer c.leave(address, k)
	ctx, cancel := context.WithTimeout(ctx, vouchFor)
	defer cancel()
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return errBusy
	}
	return c.call(ctx, k, address, append(n[:], self...))
}

func (c *callers) enter(address string) (*call, error) {
	known := c.guard.process.knows(address)
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[address]
	switch {
	case k == nil && (len(c.calls) >= maxCalls || !known && c.strangers >= maxStrangers):
		return nil, errBusy
	case k == nil:
		k = &call{turn: make(chan struct{}, 1), stranger: !known}
		c.calls[address] = k
		if k.stranger {
			c.strangers++
		}
	case k.waiting >= maxPerAddress:
		return nil, errBusy
	}
	k.waiting++
	return k, nil
}

func (c *callers) leave(address string, k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.waiting--; k.waiting > 0 {
		return
	}
	k.hangUp()
	delete(c.calls, address)
	if k.stranger {
		c.strangers--
	}
}

// knows reports whether address belongs to a member or to a lost member.
func (p *Process) knows(address string) bool {
	m := p.member.Load()
	if m == nil {
		return false
	}
	if v := m.members.View(); v != nil {
		if _, ok := v.FindAddress(address); ok {
			return true
		}
	}
	return slices.Contains(m.members.Lost(), address)
}

// errNobody means that no process listens at the address of a peer.
var errNobody = errors.New("nobody listens there")

// call asks. All streams that wait for the answers of an address share a connection, so that false
// claims delay a true one by little more than one message each.
func (c *callers) call(ctx context.Context, k *call, address string, question []byte) error {
	if k.cc == nil {
		options := c.guard.dialOptions.Load()
		if options == nil {
			return errors.New("no dial options for calls to other members")
		}
		cc, err := grpc.NewClient(passthrough+address, *options...)
		if err != nil {
			return err
		}
		k.cc = cc
	}
	answer, err := exchange(ctx, k.cc, question)
	switch {
	case err != nil:
		k.hangUp()
		if strings.Contains(err.Error(), syscall.ECONNREFUSED.Error()) { // gRPC keeps the text only
			err = fmt.Errorf("%w: %w", errNobody, err)
		}
		return fmt.Errorf("the member at this address cannot be asked: %w", err)
	case answer != 1:
		return errDenied
	}
	return nil
}

// hangUp closes the connection. The caller holds the turn, or nobody else has the call.
func (k *call) hangUp() {
	if k.cc != nil {
		_ = k.cc.Close() // nothing is under way
		k.cc = nil
	}
}

// exchange sends a question and returns the answer, when the stream has ended at both ends.
func exchange(ctx context.Context, cc *grpc.ClientConn, question []byte) (answer byte, err error) {
	stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		vouchMethod)
	if err != nil {
		return 0, err
	}
	err = stream.SendMsg(&frame{data: question})
	if err == nil {
		err = stream.CloseSend()
	}
	f, rerr := receive(stream)
	if rerr != nil {
		return 0, errors.Join(err, rerr)
	}
	if len(f.data) == 1 {
		answer = f.data[0]
	}
	f.free()
	if f, err = receive(stream); err == nil {
		f.free()
		return 0, errors.New("more than one answer")
	}
	if !errors.Is(err, io.EOF) {
		return 0, err
	}
	return answer, nil
}
