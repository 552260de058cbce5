package sharding

import (
	"runtime"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// link collects what is sent to the receiver of another member. Messages that come while a batch is
// being sent travel together in the next one. It adds no delay.
type link struct {
	binding *binding
	to      core.Member

	mu   sync.Mutex
	full [][]byte // complete batches, in order
	data []byte   // batch being collected: a concord.v1.ShardingData
	ask  uint64   // not 0: ask the member to confirm these bytes after the batches
	last int      // length of the last batch
	busy bool     // a goroutine is sending
	gone bool     // the member is not in the view, or this region has ended
	idle sync.Cond
}

// batchSize is the length at which a batch is complete.
const batchSize = 64 << 10

func newLink(l *binding, to core.Member) *link {
	k := &link{binding: l, to: to}
	k.idle.L = &k.mu
	return k
}

// add adds a message, and then a question about the bytes sent, unless confirm is 0. It returns
// false if the link has been closed.
func (k *link) add(m *wireMessage, confirm uint64) bool {
	n := m.size()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return false
	}
	k.reserve(n + 1 + protowire.SizeVarint(uint64(n)))
	k.data = protowire.AppendTag(k.data, fieldParcels, protowire.BytesType)
	k.data = protowire.AppendVarint(k.data, uint64(n))
	k.data = m.appendTo(k.data)
	k.ask = max(k.ask, confirm)
	k.begin()
	return true
}

// confirm adds the confirmation of a delivery.
func (k *link) confirm(m core.Confirm) {
	shard, numbers := uint64(m.Shard), protowire.SizeVarint(m.Number)
	n := sizeVarint(shard) + sizeBytes(numbers)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reserve(n + 2)
	k.data = protowire.AppendTag(k.data, fieldConfirmed, protowire.BytesType)
	k.data = protowire.AppendVarint(k.data, uint64(n))
	k.data = appendVarint(k.data, fieldShard, shard)
	k.data = protowire.AppendTag(k.data, fieldNumbers, protowire.BytesType)
	k.data = protowire.AppendVarint(k.data, uint64(numbers))
	k.data = protowire.AppendVarint(k.data, m.Number)
	k.begin()
}

// askTaken asks the member to confirm the bytes that were sent before.
func (k *link) askTaken(bytes uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ask = max(k.ask, bytes)
	k.begin()
}

// reserve makes room for n bytes. The caller must hold the mutex.
func (k *link) reserve(n int) {
	switch {
	case len(k.data)+n <= batchSize:
	case len(k.data) > 0:
		k.full = append(k.full, k.data)
		k.data = nil
	}
	if k.data == nil {
		k.data = make([]byte, 0, max(n, min(batchSize, 2*k.last), 512))
	}
}

// begin starts sending. The caller must hold the mutex.
func (k *link) begin() {
	if !k.busy {
		k.busy = true
		go k.run()
	}
}

func (k *link) run() {
	for {
		runtime.Gosched() // those who are ready to send do so first, and share the batch
		k.mu.Lock()
		full, data, ask := k.full, k.data, k.ask
		k.full, k.data, k.ask = nil, nil, 0
		if len(full) == 0 && len(data) == 0 && ask == 0 {
			k.busy = false
			k.idle.Broadcast()
			k.mu.Unlock()
			return
		}
		k.last = len(data)
		k.mu.Unlock()
		v := k.binding.view.Load()
		for _, b := range full {
			k.binding.seal(v, k.to, k.binding.cfg.receiverName(), wire.ShardingData, b)
		}
		if len(data) > 0 {
			k.binding.seal(v, k.to, k.binding.cfg.receiverName(), wire.ShardingData, data)
		}
		if ask != 0 {
			k.binding.tell(v, k.to, wire.ShardingSent, &pb.ShardingWord{Number: ask})
		}
	}
}

// close prevents further messages and waits until the others are with the remoting, which is soon.
func (k *link) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = true
	for k.busy {
		k.idle.Wait()
	}
}

// links holds the links of an incarnation, by member.
type links struct {
	mu sync.Mutex
	of map[core.Member]*link
}

// link returns the link to a member.
func (l *binding) link(to core.Member) *link {
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	k := l.links.of[to]
	if k == nil {
		if l.links.of == nil {
			l.links.of = map[core.Member]*link{}
		}
		k = newLink(l, to)
		l.links.of[to] = k
	}
	return k
}

// keepLinks closes the links to members that are not listed.
func (l *binding) keepLinks(listed func(core.Member) bool) {
	l.links.mu.Lock()
	var gone []*link
	for to, k := range l.links.of {
		if !listed(to) {
			delete(l.links.of, to)
			gone = append(gone, k)
		}
	}
	l.links.mu.Unlock()
	for _, k := range gone {
		k.close()
	}
}
