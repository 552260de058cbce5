package core

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// The network of a history, and the messages that it drops.

func (s *play) send(from *slot, e Send) {
	mail := post{from: from.id(), to: e.Member, Receive: Receive{Member: from.id(),
		From: from.core.Replica(), To: e.To, Manifest: e.Manifest, Payload: e.Payload}}
	if s.forge && e.Manifest == wire.ReplicatorBase && s.w.Chance("forged", 1./3) {
		mail.Payload, mail.forged = forge(e.Payload)
	}
	for _, to := range s.running() {
		if to.id() == e.Member {
			s.w.Send(from.i, to.i, &mail, func() {
				if to.id() == mail.to { // still the intended receiver
					to.misled = to.misled || mail.forged
					s.step(to, mail.Receive)
				}
			})
		}
	}
}

// post is a message in flight.
type post struct {
	from, to string
	forged   bool
	Receive
}

// forge changes a number in a part of a base.
func forge(payload []byte) ([]byte, bool) {
	var m pb.BasePart
	if err := decode(payload, &m); err != nil || len(m.Numbers) == 0 {
		return payload, false
	}
	m.Numbers[len(m.Numbers)/2] += 5
	return encode(&m), true
}

func (m *post) String() string {
	return fmt.Sprintf("%s to %s: %v, %d bytes, %08x", m.from, m.to, m.Manifest, len(m.Payload),
		crc32.ChecksumIEEE(m.Payload))
}

// honest checks every message: an acknowledgement must be about applied events, and go to their
// origin.
func (s *play) honest(from, _ int, msg any) {
	m := msg.(*post)
	if m.Manifest != wire.ReplicatorAck || s.thawed {
		return
	}
	var ack pb.Ack
	if err := decode(m.Payload, &ack); err != nil {
		s.w.Fail("%s sends an acknowledgement that nobody can read: %v", m.from, err)
	}
	s.bears(s.sender(from, m), m.To, ack.N)
	if has := s.sender(from, m).core.Seen().Get(m.To); ack.N > has {
		s.w.Fail("%s acknowledges %d events of %v and has %d", m.from, ack.N, m.To, has)
	}
}

// sender returns the slot that has just sent a message.
func (s *play) sender(from int, m *post) *slot {
	for _, sl := range s.ghosts {
		if sl.i == from && sl.core != nil && sl.core.Replica() == m.From {
			return sl
		}
	}
	return s.slots[from]
}

// randomLinks picks links of one member, in one direction or both.
func randomLinks(r *rand.Rand) string {
	a := r.IntN(players)
	oneWay := r.IntN(3) == 0
	var links []string
	for b := range players {
		if b != a && r.IntN(2) == 0 {
			links = append(links, fmt.Sprintf("%d>%d", a, b))
			if !oneWay {
				links = append(links, fmt.Sprintf("%d>%d", b, a))
			}
		}
	}
	return strings.Join(links, " ")
}

// cut carries out: cut FROM>TO … for TIME.
func (s *play) cut(a sim.Args) {
	n := len(a.Words) - 2
	for _, word := range a.Words[:max(n, 0)] {
		from, to, _ := strings.Cut(word, ">")
		x, err1 := strconv.Atoi(from)
		y, err2 := strconv.Atoi(to)
		if errors.Join(err1, err2) != nil {
			a.Fail("links must be like 0>1")
			return
		}
		s.w.Cut(x, y)
		s.w.After(a.Span(n+1), func() { s.w.Mend(x, y) })
	}
}
